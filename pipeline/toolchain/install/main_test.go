package install_test

import (
	"os"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/toolchain/sandbox"
)

// TestMain is also the keeper of the sandbox in which a Python is asked what it has.
func TestMain(m *testing.M) {
	if exit, keeper := sandbox.Enter(); keeper {
		os.Exit(exit)
	}
	os.Exit(m.Run())
}
