package integration

import (
	"maps"
	"os"
	"reflect"

	"github.com/spf13/cobra"

	"mlpromote.dev/mlpromote/cmd/internal/command"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/cireport"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/cistep"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/demo"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/export"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/program"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/rendering"
)

// Render writes digests into deployment files.
func (v Verbs) Render() *cobra.Command { return rendering.Verb{UI: v.UI, With: v.With}.Command() }

// Demo makes a registry to look at.
func (v Verbs) Demo() *cobra.Command {
	return demo.Verb{UI: v.UI, Log: os.Stderr, Environment: os.Environ()}.Command()
}

// CI has what only jobs of a CI system need.
func (v Verbs) CI() *cobra.Command {
	report := cireport.Verb{UI: v.UI, Version: v.Version, With: v.With, Reference: v.Reference}
	step := cistep.Verb{UI: v.UI, Log: os.Stderr, Secrets: append(program.SecretVariables(), command.JobSecret),
		Getenv: func(name string) string { return v.Getenv(name) }} // with secrets from files, which are read later
	return command.Group("ci", "Run steps of CI jobs, and report to CI systems", report.Command(), step.Command(), v.matrixCommand())
}

// Commands returns the commands that CI systems and deployments need.
func Commands(a *program.App) []*cobra.Command {
	v := Verbs{a}
	return []*cobra.Command{v.Render(), v.CI(), v.Demo(), export.Verbs{App: a}.Command()}
}

// Documents are the types of what the verbs print with --output json.
func Documents() map[string][]reflect.Type {
	all := cireport.Documents()
	all["demo"] = []reflect.Type{reflect.TypeFor[demo.Made]()}
	maps.Copy(all, matrixDocuments())
	maps.Copy(all, cistep.Documents())
	maps.Copy(all, rendering.Documents())
	maps.Copy(all, export.Documents())
	return all
}
