// Command mlpromote builds engines from models, proves that they compute what the
// reference computes, signs what was built and what was proven, and promotes the
// identical bytes from one environment to the next.
package main

import (
	"context"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"mlpromote.dev/mlpromote/cmd/internal/command"
	"mlpromote.dev/mlpromote/cmd/internal/ui"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/program"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/toolchains"
)

// version is set by the linker.
var version = command.Unreleased

func main() {
	if exit, keeper := toolchains.EnterSandbox(); keeper {
		os.Exit(exit)
	}
	os.Exit(runProgram())
}

// gcPercent lets the heap grow before it is collected: most verbs are done with less
// than one collection would cost them.
const gcPercent = 400

// runProgram is main with an exit code, so that tests can start it in their own process image.
func runProgram() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	debug.SetGCPercent(gcPercent)
	app := &program.App{
		UI:      ui.New("mlpromote", os.Stdout, os.Stderr, os.Getenv),
		Getenv:  command.KeepJobSecret(),
		Stdin:   os.Stdin,
		Version: version,
	}
	return runCommand(ctx, app, os.Args[1:])
}
