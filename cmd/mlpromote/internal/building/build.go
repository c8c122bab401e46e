package building

import (
	"context"
	"errors"
	"strings"

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

func buildCommand(a *program.App) *cobra.Command {
	var file string
	var cache toolchains.CacheFlags
	var options build.Options
	var own toolchains.Replacements
	c := &cobra.Command{
		Use:   "build",
		Short: "Build the engines of a spec and publish them in the first environment",
		Long: `Plans the spec, runs the steps that the cache lacks, stores and signs the release, and moves
the first environment's head to it. Building twice results in the same digest and adds nothing.

All engines are tried, and those that fail are listed. Then nothing is stored, unless
--keep-going asks for the release of the others; the exit code is the failure's.

With --target, only engines of these targets are made, and stored as a part of a release: on
several machines, each with its toolchains. mlpromote assemble makes the release of the parts.

stdout: the ref of the release.`,
		Example: "  REF=$(mlpromote build)\n  mlpromote build --target linux-amd64-v3",
		Args:    command.Exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := own.Check(); err != nil {
				return err
			}
			s, err := a.Toolchains().LoadSpec(file)
			if err != nil {
				return err
			}
			if err := ingest.CheckFiles(s); err != nil {
				return err
			}
			cache.Off = cache.Off || options.CheckReproducible
			m, address, err := a.Toolchains().OpenBuildCache(s, cache)
			if err != nil {
				return err
			}
			if err := a.At().Create(); err != nil {
				return err
			}
			return a.With(c.Context(), func(i *wiring.Instance) error {
				if err := m.Share(i, address, s.Model); err != nil {
					return err
				}
				return buildRelease(c.Context(), a, i, s, m, own.Or(s), options)
			})
		},
	}
	program.SpecFlag(c, &file)
	cache.Add(c)
	own.Add(c)
	own.AddProgram(c)
	c.Flags().BoolVarP(&options.KeepGoing, "keep-going", "k", false,
		"make the release of the engines that can be made, and report the others as an error")
	c.Flags().StringSliceVar(&options.Targets, "target", nil, "make the engines of this target alone, as a part of a release; may be repeated")
	c.Flags().BoolVar(&options.CheckReproducible, "check-reproducible", false,
		"do every step twice, without the cache, and record in the provenance whether bytes or outputs are the same")
	return c
}

func buildRelease(ctx context.Context, a *program.App, i *wiring.Instance, s *spec.Spec,
	m *toolchains.BuildCache, own toolchains.Replacements, options build.Options) error {
	if err := program.ForgetBuild(); err != nil {
		return err
	}
	env := a.Pipeline(i, m, own)
	env.BeforeInstall = func(ctx context.Context) error { return env.UseBuilderKey(ctx, s.Model) }
	env.Planned = func(plan plan.Plan) {
		warnTaken(a, takenIn(ctx, i, plan))
		warnReplaced(ctx, a, i, env, s, plan)
	}
	result, failed := build.Build(ctx, env, s, options)
	made := result.Release.Digest != "" // of some engines at least
	err := m.Close(ctx, a.UI, result.Steps > result.Cached)
	if err != nil || !made {
		return errors.Join(failed, err)
	}
	if result.Unchanged && result.Release.Part == "" && i.Envs.First().External() {
		// A publication that broke off before its tags were written is finished.
		if _, err := i.Publish(ctx, api.Publication{Model: result.Release.Model, Release: result.Release.Digest}); err != nil {
			return err
		}
	}
	result.Ref.Host = i.HostOf(result.Ref.Environment)
	if err := program.RememberBuild(result.Ref); err != nil {
		return err
	}
	switch {
	case result.Unchanged && result.Release.Part != "":
		a.UI.Note("nothing to do: %s has these engines, as a part of a release", result.Ref.Environment)
	case result.Unchanged:
		a.UI.Note("nothing to do: %s has the release of this plan", result.Ref.Environment)
	case result.Release.Part != "":
		a.UI.Note("this is a part: mlpromote assemble makes the release when all parts are there")
	}
	if len(result.Failed) > 0 {
		a.UI.Note("the release is made without %s: %s", registry.Count(len(result.Failed), "engine"), failedLabels(result.Failed))
	}
	if result.Unchanged {
		if err := built(a, result); err != nil {
			return err
		}
		return failed
	}
	a.UI.Note("%s, %d of %s from the cache, %s added, %s",
		registry.Count(len(result.Release.Engines), "engine"), result.Cached, registry.Count(result.Steps, "step"),
		registry.Count(result.Attached, "signature"), ui.Seconds(result.Elapsed))
	if err := built(a, result); err != nil {
		return err
	}
	return failed
}

func failedLabels(failed []build.FailedEngine) string {
	var labels []string
	for _, f := range failed {
		labels = append(labels, f.Label)
	}
	return strings.Join(labels, ", ")
}

func built(a *program.App, result build.Result) error {
	return a.UI.Result(ui.Plain(result.Ref.String()), builtRelease{result.Ref.String(), result})
}

// builtRelease is what build made, with its ref as printed.
type builtRelease struct {
	Ref string `json:"ref"`
	build.Result
}
