package main

import (
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"mlpromote.dev/mlpromote/pipeline/toolchain/sandbox"
	"mlpromote.dev/mlpromote/pipeline/toolchain/toolchaintest"
)

// TestMain lets the test binary stand in for the program: scripts, and the program
// itself where it starts its driver, run it as mlpromote.
func TestMain(m *testing.M) {
	if exit, keeper := sandbox.Enter(); keeper {
		os.Exit(exit)
	}
	testscript.Main(m, map[string]func(){"mlpromote": func() { os.Exit(run()) }})
}

// testCache is the MLPROMOTE_CACHE of tests: it has the toolchain, installed now if
// need be, and the steps of earlier runs.
func testCache(tb testing.TB) string {
	tb.Helper()
	return toolchaintest.Installer(tb, "onnxruntime").Root
}
