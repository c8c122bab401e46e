package main

import (
	"os"

	"github.com/spf13/cobra"

	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/demo"
)

func (a *app) demoCommand() *cobra.Command {
	return demo.Verb{UI: a.ui, Log: os.Stderr, Environment: os.Environ()}.Command()
}
