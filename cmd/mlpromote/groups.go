package main

import (
	"maps"
	"reflect"

	"github.com/spf13/cobra"
	"mlpromote.dev/mlpromote/cmd/internal/command"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/diagnosis"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/export"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/integration"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/toolchains"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/upkeep"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/wiring"
	"mlpromote.dev/mlpromote/pipeline/run"
	"mlpromote.dev/mlpromote/pipeline/spec"
)

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

func diagnosisCommands(a *app) []*cobra.Command {
	v := diagnosis.Verbs{UI: a.ui, With: a.with, Reference: a.modelOrReference, Format: &a.output.Format,
		Pipeline: func(i *wiring.Instance, own toolchains.Replacements) *run.Env {
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
