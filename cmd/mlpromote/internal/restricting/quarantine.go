package restricting

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"mlpromote.dev/mlpromote/cmd/internal/command"
	"mlpromote.dev/mlpromote/cmd/internal/ui"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/clock"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/printing"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/program"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/wiring"
	"mlpromote.dev/mlpromote/pipeline/approver"
	"mlpromote.dev/mlpromote/registry"
)

func quarantineCommand(a *program.App) *cobra.Command {
	var f quarantineFlags
	c := &cobra.Command{
		Use:   "quarantine REF|DIGEST",
		Short: "Quarantine a release or an engine, or restrict what releases are made from",
		Long: `Signs, as approver, that a release or an engine must not be used, and attaches that in every
environment that has it. Promotions of it are refused, nodes are no longer given it, and
mlpromote trust refuses a folder that holds the quarantine. Heads do not move: put an
environment back with mlpromote rollback.

A bare digest is looked for in every model. stdout: the environments that it was attached in.

With --source, --calibration, --toolchain or --operator: restricts every engine that was made from
that, also later ones. Signs the next restriction list of each environment, or of --env alone.
An engine without a signed statement of its ingredients counts as restricted. stdout:
the restrictions now, and the affected heads, engines and node types.`,
		Example: `  mlpromote quarantine prod/vision/digits:1.4.0 --reason "wrong labels in the training data"
  mlpromote quarantine sha256:… --reason "crashes on driver 580"
  mlpromote quarantine lift prod/vision/digits:1.4.0 --reason "labels were right"
  mlpromote quarantine --toolchain 'onnxruntime@<1.24.0' --env prod --reason "CVE-2026-1234"`,
		Args: f.releaseOrFlags,
		RunE: func(c *cobra.Command, args []string) error {
			return a.With(c.Context(), func(i *wiring.Instance) error {
				if len(args) == 0 {
					add, err := f.restrictions()
					if err != nil {
						return err
					}
					return restrict(c.Context(), a, i, approver.Change{Environment: f.environment, Reason: f.reason, Add: add})
				}
				return quarantine(c.Context(), a, i, args[0], f, approver.Quarantiner.Set, "in quarantine")
			})
		},
	}
	f.add(c)
	var lifted quarantineFlags
	lift := &cobra.Command{
		Use:   "lift REF|DIGEST",
		Short: "Lift the quarantine of a release or an engine, or a restriction",
		Long: `Signs, as approver, that all quarantines that a release or an engine has now are over. To lift a
restriction, give the flags that made it, written the same way: this signs restriction lists without it.`,
		Example: `  mlpromote quarantine lift prod/vision/digits:1.4.0 --reason "labels were right"
  mlpromote quarantine lift --toolchain 'onnxruntime@<1.24.0' --reason "we do not use the broken operator"`,
		Args: lifted.releaseOrFlags,
		RunE: func(c *cobra.Command, args []string) error {
			return a.With(c.Context(), func(i *wiring.Instance) error {
				if len(args) == 0 {
					lift, err := lifted.restrictions()
					if err != nil {
						return err
					}
					return restrict(c.Context(), a, i, approver.Change{Environment: lifted.environment, Reason: lifted.reason, Lift: lift})
				}
				return quarantine(c.Context(), a, i, args[0], lifted, approver.Quarantiner.Lift, "no longer in quarantine")
			})
		},
	}
	lifted.add(lift)
	c.AddCommand(append(restrictionCommands(a), lift)...)
	return c
}

// quarantineFlags are those of quarantine and of lift.
type quarantineFlags struct {
	restrictionFlags
	environment, reason string
}

func (f *quarantineFlags) add(c *cobra.Command) {
	f.restrictionFlags.add(c)
	c.Flags().StringVar(&f.environment, "env", "",
		"environment to look for it in (default: all); it counts wherever else it is. Restrictions: the only environment that they are for")
	c.Flags().StringVar(&f.reason, "reason", "", "why; stays with the evidence")
	command.Required(c, "reason")
}

type quarantineStep func(approver.Quarantiner, context.Context, []approver.Place, string) ([]approver.Attached, error)

// quarantine finds a release or an engine and attaches what step makes.
func quarantine(ctx context.Context, a *program.App, i *wiring.Instance, text string, f quarantineFlags, step quarantineStep, outcome string) error {
	if f.environment != "" {
		if _, err := i.Envs.Find(f.environment); err != nil {
			return err
		}
	}
	unread := make(map[approver.Unread]bool)
	q := quarantiner(a, i, unread)
	places, err := quarantined(ctx, a, i, q, text, f.environment)
	if err != nil {
		return err
	}
	attached, err := step(q, ctx, places, f.reason)
	if err != nil {
		return err
	}
	if len(attached) == 0 {
		a.UI.Note("%s is in quarantine for this reason already: nothing was signed", text)
	}
	if err := q.AddNodes(ctx, attached, i.Nodes); err != nil {
		a.UI.Note("it is attached; the nodes that have it could not be listed: %s", err)
	}
	var lines []string
	for _, at := range attached {
		lines = append(lines, ui.Plain(fmt.Sprintf("%s/%s:%s %s", at.Environment, at.Model, at.Version, outcome)))
		lines = append(lines, printing.NodeLines("  ", at.Nodes)...)
	}
	return errors.Join(a.UI.Result(strings.Join(lines, "\n"), program.Listed(attached)), leftOut(len(unread), outcome))
}

// quarantiner tells of releases that cannot be read, each once, and remembers them in unread.
func quarantiner(a *program.App, i *wiring.Instance, unread map[approver.Unread]bool) approver.Quarantiner {
	return approver.Quarantiner{Registry: i, Environments: i.Envs, Sign: i.Keys.Sign, Now: clock.Now, Unread: func(u approver.Unread) {
		if !unread[u] {
			a.UI.Note("%s/%s@%s cannot be read, so whether it has this is not known: %s", u.Environment, u.Model, u.Release, u.Reason)
		}
		unread[u] = true
	}}
}

// leftOut says that releases could not be looked at: what was done may have to be done again when they are repaired.
func leftOut(unread int, outcome string) error {
	if unread == 0 {
		return nil
	}
	return registry.WithHint(
		registry.Errorf(registry.CodeTrust, "the listed releases are %s, and %s could not be read", outcome, registry.Count(unread, "release")),
		"run this again when they are repaired; mlpromote scrub lists the damage")
}

// quarantined lists where the release or engine is that a ref or a bare digest names.
func quarantined(ctx context.Context, a *program.App, i *wiring.Instance, q approver.Quarantiner, text, environment string) ([]approver.Place, error) {
	if d := registry.Digest(text); d.Validate() == nil {
		return q.Find(ctx, environment, "", d)
	}
	ref, err := a.Reference(i, []string{text})
	if err != nil {
		return nil, err
	}
	subject := ref.Digest
	if subject == "" {
		r, err := i.Release(ctx, ref.Environment, ref.Model, ref.TagOrDigest())
		if err != nil {
			return nil, err
		}
		subject = r.Digest
	}
	return q.Find(ctx, environment, ref.Model, subject)
}
