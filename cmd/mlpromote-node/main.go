// Command mlpromote-node is the part of mlpromote for machines that run engines: it asks a service which engine
// is right, pulls it, and checks what was pulled. It does not build, sign or open a data directory, so it is
// small and needs no cgo.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"mlpromote.dev/mlpromote/cmd/internal/command"
	"mlpromote.dev/mlpromote/cmd/internal/ui"
)

func main() {
	os.Exit(run())
}

// run is main with an exit code.
func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	app := &app{ui: ui.New(program, os.Stdout, os.Stderr, os.Getenv), getenv: command.KeepJobSecret()}
	return command.Run(ctx, app.root(), app.ui, &app.subject, os.Args[1:])
}
