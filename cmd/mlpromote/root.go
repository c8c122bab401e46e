package main

import (
	"context"

	"github.com/spf13/cobra"

	"mlpromote.dev/mlpromote/cmd/internal/command"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/serving"
)

// runCommand runs a command line and returns the exit code that docs/reference/exit-codes.md names.
func runCommand(ctx context.Context, a *app, args []string) int {
	if serving.AsksForJSONLog(args, a.getenv) {
		serving.LogAs(a.ui, "json")
	}
	return command.Run(ctx, root(a), a.ui, &a.subject, args)
}

// root returns the command of the program, with all verbs.
func root(a *app) *cobra.Command {
	root := command.Root(&cobra.Command{
		Use:   "mlpromote",
		Short: "Build, verify, sign and promote machine-learning engines",
		Long: `mlpromote builds each engine of a model once, proves that it computes what the
reference computes, signs what was built and what was proven, and promotes the
identical bytes from staging to prod.

  mlpromote init model.onnx     write mlpromote.yaml
  mlpromote build               make the engines, put them into staging
  mlpromote verify              prove them on this machine
  mlpromote promote             move the proven release to prod
  mlpromote resolve MODEL --env prod
  mlpromote pull MODEL --env prod -o DIR`,
		Version:           a.version,
		PersistentPreRunE: func(c *cobra.Command, _ []string) error { return a.configure(c) },
	}, a.ui, &a.output)
	a.addFlags(root)
	for _, g := range groups() {
		root.AddCommand(g.commands(a)...)
	}
	root.AddCommand(command.Version(a.ui, a.version), referenceCommand(a.version, func(name string) string { return a.getenv(name) }))
	return root
}
