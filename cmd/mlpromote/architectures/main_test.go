package architectures

import (
	"os"
	"testing"

	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/programtest"
)

func TestMain(m *testing.M) { os.Exit(programtest.Main{M: m}.Run()) }
