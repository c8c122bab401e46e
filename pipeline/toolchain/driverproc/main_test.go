package driverproc_test

import (
	"os"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/toolchain/sandbox"
	"mlpromote.dev/mlpromote/pipeline/toolchain/toolchaintest"
)

// secret is what no driver may see.
const secret = "open sesame"

func TestMain(m *testing.M) {
	if exit, keeper := sandbox.Enter(); keeper {
		os.Exit(exit)
	}
	os.Setenv("COSIGN_PASSWORD", secret)
	os.Exit(toolchaintest.Main(m, nil))
}
