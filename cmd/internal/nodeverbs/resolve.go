package nodeverbs

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"mlpromote.dev/mlpromote/cmd/internal/command"
	"mlpromote.dev/mlpromote/cmd/internal/connect"
	"mlpromote.dev/mlpromote/cmd/internal/ui"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/artifact"
)

// Resolve finds the engine that fits a node.
func (v Verbs) Resolve() *cobra.Command {
	var q nodeFlags
	var explain bool
	var trust, as string
	c := &cobra.Command{
		Use:   "resolve MODEL",
		Short: "Find the engine that fits a node",
		Long: `Prints the ref of one engine, with its digest. --as image prints the ref of its image form
instead, which pods mount as an image volume. --explain adds why every other candidate was
rejected. Exit code 6: no engine fits.`,
		Example: "  oras pull $(" + v.UI.Program + " resolve vision/digits --env prod) -o DIR\n" +
			"  " + v.UI.Program + " resolve vision/digits --env prod --as image",
		Args: command.Exactly("MODEL"),
		RunE: func(c *cobra.Command, args []string) error {
			return v.With(c.Context(), func(r *connect.Registry) error {
				query, err := v.query(c, r, q, args[0])
				if err != nil {
					return err
				}
				if query.As, err = api.ParseForm(as); err != nil {
					return registry.Errorf(registry.CodeInvalid, "--as: %w", err)
				}
				if err := v.followOnly(c.Context(), r, trust, q.environment); err != nil {
					return err
				}
				resolution, err := r.Resolve(c.Context(), query)
				if explain && len(resolution.Candidates) > 0 {
					v.UI.Note("candidates:\n%s", ui.Layout(candidatesText(resolution)))
				}
				if err != nil {
					if len(resolution.Candidates) > 0 {
						v.UI.Partial(resolution)
					}
					return withRuntimeHint(err, query, resolution)
				}
				if e := resolution.Engine; e != nil && e.Load != nil {
					v.UI.Note("%s", loadNote(e.Label(), *e.Load))
				}
				resolution.Ref = r.Reference(resolution.Ref)
				return v.UI.Result(ui.Plain(resolution.Ref), resolution)
			})
		},
	}
	q.flags(c)
	c.Flags().StringVar(&trust, "trust", "",
		"trust file that has follow:; if its newest trust bundle is not accepted, the registry is asked for no engine")
	c.Flags().StringVar(&as, "as", "engine", "form of the engine: engine, or image for container runtimes")
	c.Flags().BoolVar(&explain, "explain", false, "print why every other candidate was rejected (on stderr)")
	return c
}

// followOnly accepts the newest trust bundle before the registry is asked for an engine. An answer of resolve is not
// signed, so keys alone say nothing about it.
func (v Verbs) followOnly(ctx context.Context, r *connect.Registry, file, environment string) error {
	if file == "" {
		return nil
	}
	if follows, err := v.trust(file).Follows(); err != nil || !follows {
		return errors.Join(err, registry.Errorf(registry.CodeInvalid,
			"--trust %s: resolve wants a file with follow:, since no signature is checked before the pull", file))
	}
	_, err := v.follow(ctx, r, file, environment)
	return err
}

// loadNote says how an engine with a load profile is to be loaded.
func loadNote(label string, load artifact.LoadProfile) string {
	if load.Required {
		return fmt.Sprintf("%s must be loaded by its profile, %s: %s (a plain load is not proven)", label, artifact.LoadProfileFile, load)
	}
	return fmt.Sprintf("%s was proven by its load profile, %s: %s", label, artifact.LoadProfileFile, load)
}

// candidatesText is a line for each candidate: that it was chosen, or why not.
func candidatesText(r api.Resolution) string {
	rows := [][]string{}
	for _, c := range r.Candidates {
		why := "chosen"
		if !c.Chosen {
			why = strings.Join(c.Reasons, "; ")
		}
		rows = append(rows, []string{"  " + c.Label, why})
	}
	return strings.TrimRight(ui.Table(rows), "\n")
}
