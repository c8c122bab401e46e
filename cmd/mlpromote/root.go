package main

import (
	"context"
	"maps"
	"reflect"

	"github.com/spf13/cobra"

	"mlpromote.dev/mlpromote/cmd/internal/command"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/diagnosis"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/export"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/integration"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/serving"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/toolchains"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/upkeep"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/wiring"
	"mlpromote.dev/mlpromote/pipeline"
	"mlpromote.dev/mlpromote/pipeline/spec"
)

// runCommand runs a command line and returns the exit code that docs/reference/exit-codes.md names.
func runCommand(ctx context.Context, a *app, args []string) int {
	if serving.AsksForJSONLog(args, a.getenv) {
		serving.LogAs(a.ui, "json")
	}
	return command.Run(ctx, root(a), a.ui, &a.subject, args)
}

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
	root.AddCommand(command.Version(a.ui, a.version), referenceCommand(a))
	return root
}

// group is a package of verbs.
type group struct {
	commands  func(*app) []*cobra.Command
	documents func() map[string][]reflect.Type // what they print with --output json
}

// groups lists all verbs, but for version and those that write reference pages.
func groups() []group {
	return []group{
		{draftingCommands, draftingDocuments},
		{buildingCommands, buildingDocuments},
		{provingCommands, provingDocuments},
		{diagnosisCommands, diagnosis.Documents},
		{promotingCommands, promotingDocuments},
		{restrictingCommands, restrictingDocuments},
		{policiesCommands, policiesDocuments},
		{nodesCommands, nodesDocuments},
		{exportCommands, export.Documents},
		{integrationCommands, integration.Documents},
		{operatingCommands, operatingDocuments},
		{upkeepCommands, upkeep.Documents},
	}
}

// documents are what each verb prints with --output json. From them docs/reference has its
// schema; tests hold what verbs print against that.
func documents() map[string][]reflect.Type {
	all := map[string][]reflect.Type{"version": {reflect.TypeFor[command.About]()}}
	for _, g := range groups() {
		maps.Copy(all, g.documents())
	}
	return all
}

// The groups whose package takes what it needs by itself.

func diagnosisCommands(a *app) []*cobra.Command {
	v := diagnosis.Verbs{UI: a.ui, With: a.with, Reference: a.modelOrReference, Format: &a.output.Format,
		Pipeline: func(i *wiring.Instance, own toolchains.Replacements) *pipeline.Pipeline {
			return a.pipeline(i, nil, own)
		}}
	return []*cobra.Command{v.Bisect(), v.Replay(), v.Profile(), v.Readiness()}
}

func exportCommands(a *app) []*cobra.Command {
	return []*cobra.Command{export.Verbs{UI: a.ui, At: a.at}.Command()}
}

func integrationCommands(a *app) []*cobra.Command {
	v := integration.Verbs{UI: a.ui, Version: a.version, With: a.with,
		Reference: a.reference, Secrets: append(secretVariables(), command.JobSecret),
		LoadSpec: func(file string) (*spec.Spec, error) { return a.tools().LoadSpec(file) },
		Getenv:   func(name string) string { return a.getenv(name) }, // with secrets from files, which are read later
	}
	return []*cobra.Command{v.Render(), v.CI(), v.Demo()}
}

func upkeepCommands(a *app) []*cobra.Command {
	v := upkeep.Verbs{UI: a.ui, At: a.at, With: a.with, Reference: a.reference, TakeOver: &a.takeOver}
	return []*cobra.Command{v.GC(), v.Scrub(), v.Save(), v.Load(), v.Backup(), v.Restore()}
}
