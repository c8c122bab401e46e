package main

import (
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"mlpromote.dev/mlpromote/cmd/internal/connect"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/programtest"
	"mlpromote.dev/mlpromote/pipeline/toolchain/sandbox"
)

// defaultData is where the data directory of a script is.
const defaultData = connect.DefaultData

// TestMain lets the test binary stand in for the program: scripts, and the program
// itself where it starts its driver, run it as mlpromote.
func TestMain(m *testing.M) {
	if exit, keeper := sandbox.Enter(); keeper {
		os.Exit(exit)
	}
	testscript.Main(programtest.Main{M: m}, map[string]func(){"mlpromote": func() { os.Exit(runProgram()) }})
}
