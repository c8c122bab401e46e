package building

import (
	"context"

	"github.com/spf13/cobra"

	"mlpromote.dev/mlpromote/cmd/internal/command"
	"mlpromote.dev/mlpromote/cmd/internal/ui"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/program"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/toolchains"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/wiring"
	"mlpromote.dev/mlpromote/pipeline/build"
	"mlpromote.dev/mlpromote/pipeline/ingest"
	"mlpromote.dev/mlpromote/pipeline/plan"
	"mlpromote.dev/mlpromote/pipeline/spec"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
)

func assembleCommand(a *program.App) *cobra.Command {
	var file string
	c := &cobra.Command{
		Use:   "assemble",
		Short: "Put a release together from engines that several machines built",
		Long: `Finds the parts that mlpromote build --target stored for this spec, its files and this commit, checks who signed them
and their sources, stores and signs the release, and moves the first environment's head to it. It needs no
toolchain and builds nothing. If two parts have an engine for the same target and variant, it takes the engine that the
history recorded first.

Run it when all parts are there, or after each of them: the same parts give the same release, and a release that exists
is not made again.

stdout: the ref of the release. Exit code 9: engines are missing; the error names them and the label of their runner.`,
		Example: "  mlpromote assemble -f mlpromote.yaml",
		Args:    command.Exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			s, err := a.Toolchains().LoadSpec(file)
			if err != nil {
				return err
			}
			if err := ingest.CheckFiles(s); err != nil {
				return err
			}
			return a.With(c.Context(), func(i *wiring.Instance) error { return assemble(c.Context(), a, i, s) })
		},
	}
	program.SpecFlag(c, &file)
	return c
}

func assemble(ctx context.Context, a *program.App, i *wiring.Instance, s *spec.Spec) error {
	env := a.Pipeline(i, nil, toolchains.Replacements{})
	env.Planned = func(plan plan.Plan) { warnTaken(a, takenIn(ctx, i, plan)) }
	result, err := build.Assemble(ctx, env, s)
	if err != nil {
		if len(result.Missing) > 0 {
			a.UI.Partial(assembledRelease{"", result})
		}
		return err
	}
	if result.Unchanged && i.Envs.First().External() {
		if _, err := i.Publish(ctx, api.Publication{Model: result.Release.Model, Release: result.Release.Digest}); err != nil {
			return err
		}
	}
	result.Ref.Host = i.HostOf(result.Ref.Environment)
	if err := program.RememberBuild(result.Ref); err != nil {
		return err
	}
	for _, s := range result.Aside {
		a.UI.Note("set aside: %s %s: %s", s.Part, s.Label, s.Reason)
	}
	if result.Unchanged {
		a.UI.Note("nothing to do: %s has this release", result.Ref.Environment)
	} else {
		a.UI.Note("%s of %s, %s added, %s", registry.Count(len(result.Release.Engines), "engine"), registry.Count(len(result.Parts), "part"),
			registry.Count(result.Attached, "signature"), ui.Seconds(result.Elapsed))
	}
	return a.UI.Result(ui.Plain(result.Ref.String()), assembledRelease{result.Ref.String(), result})
}

// assembledRelease is what assemble made, with its ref as printed.
type assembledRelease struct {
	Ref string `json:"ref,omitempty"`
	build.AssembleResult
}
