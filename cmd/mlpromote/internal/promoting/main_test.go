package promoting

import (
	"os"
	"testing"

	"mlpromote.dev/mlpromote/cmd/internal/ui"
)

// Texts are as wide as on a terminal of 80 columns; in a pipe tables are not bounded.
func TestMain(m *testing.M) {
	ui.New("mlpromote", os.Stdout, os.Stderr, func(name string) string { return map[string]string{"COLUMNS": "80"}[name] })
	os.Exit(m.Run())
}
