package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"mlpromote.dev/mlpromote/cmd/internal/command"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/completing"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/program"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/serving"
)

// runCommand runs a command line and returns the exit code that docs/reference/exit-codes.md names.
func runCommand(ctx context.Context, a *program.App, args []string) int {
	if serving.AsksForJSONLog(args, a.Getenv) {
		serving.LogAs(a.UI, "json")
	}
	return command.Run(ctx, root(a), a.UI, &a.Subject, args)
}

// root returns the command of the program, with all verbs.
func root(a *program.App) *cobra.Command {
	root := command.Root(&cobra.Command{
		Use:   "mlpromote",
		Short: "Build, verify, sign and promote machine-learning engines",
		Long: `mlpromote builds each engine of a model once, proves that it computes the same as
the model, signs engines and proofs, and promotes the identical bytes from staging
to prod.

  mlpromote init model.onnx     write mlpromote.yaml
  mlpromote build               make the engines, put them into staging
  mlpromote verify              prove them on this machine
  mlpromote promote             move the proven release to prod
  mlpromote pull MODEL --env prod -o DIR`,
		Version:           a.Version,
		PersistentPreRunE: func(c *cobra.Command, _ []string) error { return a.Configure(c) },
	}, a.UI, &a.Output)
	a.AddFlags(root)
	for _, g := range groups() {
		root.AddCommand(g.commands(a)...)
	}
	root.AddCommand(command.Version(a.UI, a.Version), referenceCommand(a.Version, func(name string) string { return a.Getenv(name) }))
	addHelp(root)
	root.SetUsageTemplate(strings.ReplaceAll(root.UsageTemplate(), ".FlagUsages", ".FlagUsagesWrapped 80"))
	completing.Add(root, a)
	return root
}
