package promoting

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"mlpromote.dev/mlpromote/cmd/internal/command"
	"mlpromote.dev/mlpromote/cmd/internal/ui"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/clock"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/program"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/wiring"
	"mlpromote.dev/mlpromote/pipeline/approver"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/policy"
)

func approveCommand(a *program.App) *cobra.Command {
	var req approver.Request
	var breakGlass, attested bool
	c := &cobra.Command{
		Use:   "approve [REF] --env ENV",
		Short: "Approve the promotion of a release to an environment",
		Long: `Signs, as approver, that a release may be promoted to an environment, and attaches that to
the release where the promotion comes from. Environments ask for approvals in
environments.yaml, each by another key. A key that signed a build of the release does not count.
An approval counts for this release and this environment only, until it expires or its
signer withdraws it.

With --accept you accept one difference for which no-looser or compatible-interface refuses the
release. promote --dry-run lists them, separated by semicolons, and --accept '' lists each as the
LINE to give.

With --break-glass you agree that the promotion skips unmet requirements in an emergency, those
of --skip, which environments.yaml must allow. Two approvers have to agree to skip the same. It
counts for the present head of ENV alone, for at most 24 hours, and is used up when a head
moves. promote --break-glass then promotes.

With --attested the service of --registry signs in the name of the owner of your token, with its own
key, so that you need none. That counts only where environments.yaml lists you under approvals:
attested:, and everybody sees that it is the word of the service.

REF is a release in the environment that ENV takes releases from, or a model with a tag or
digest there; it defaults to the last build here. stdout: the approved release.`,
		Example: `  mlpromote approve vision/digits:1.4.0 --env prod --comment "load test of 22 May passed"
  mlpromote approve vision/digits:1.4.0 --env prod --comment "until the fair" --expires 72h
  mlpromote approve vision/digits:1.4.0 --env prod --comment "found a regression" --withdraw
  mlpromote approve vision/digits:1.4.0 --env prod --comment "looks good" --attested --registry https://mlpromote.example.com
  mlpromote approve vision/digits:1.4.1 --env prod --break-glass --skip no-freeze --skip approvals --comment "prod is down"`,
		Args: command.AtMost("REF"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := checkBreakGlass(&req, breakGlass); err != nil {
				return err
			}
			return a.With(c.Context(), func(i *wiring.Instance) error { return approve(c.Context(), a, i, req, attested, args) })
		},
	}
	c.Flags().StringVar(&req.Environment, "env", "", "environment that the release is to be promoted to")
	c.Flags().StringVar(&req.Comment, "comment", "", "why; stays with the evidence")
	c.Flags().DurationVar(&req.Expires, "expires", 0, "time after which the approval does not count, such as 72h (default: it does not expire)")
	c.Flags().StringArrayVar(&req.Accepts, "accept", nil, "`LINE` that you accept: one difference of no-looser or compatible-interface, word for word; repeatable")
	c.Flags().BoolVar(&req.Withdraw, "withdraw", false, "take back what you approved before")
	c.Flags().BoolVar(&breakGlass, "break-glass", false, "in an emergency, agree that the promotion skips requirements (default --expires: 4h)")
	c.Flags().StringArrayVar(&req.BreakGlass, "skip", nil, "with --break-glass: requirement to skip; repeatable")
	c.Flags().BoolVar(&attested, "attested", false, "have the service sign in your name, in place of a key of your own")
	command.Required(c, "env")
	command.Required(c, "comment")
	return c
}

// breakGlassTime is how long a break-glass approval counts without --expires.
const breakGlassTime = 4 * time.Hour

// checkBreakGlass checks the flags of a break-glass approval, and gives it an end.
func checkBreakGlass(req *approver.Request, breakGlass bool) error {
	switch {
	case breakGlass != (len(req.BreakGlass) > 0):
		return registry.Errorf(registry.CodeInvalid, "want --break-glass and --skip together, such as --break-glass --skip no-freeze; there are %s",
			strings.Join(policy.Skippable(), ", "))
	case breakGlass && (req.Withdraw || len(req.Accepts) > 0):
		return registry.Errorf(registry.CodeInvalid,
			"--break-glass goes with neither --accept nor --withdraw; --withdraw alone takes back both kinds of approval")
	case breakGlass && req.Expires == 0:
		req.Expires = breakGlassTime
	}
	return nil
}

func approve(ctx context.Context, a *program.App, i *wiring.Instance, req approver.Request, attested bool, args []string) error {
	if req.Expires < 0 || req.Expires > 0 && req.Expires < time.Second {
		return registry.Errorf(registry.CodeInvalid, "--expires %s: want a time to come, such as 72h", req.Expires)
	}
	from, _, err := i.Envs.Edge("", req.Environment)
	if err != nil {
		return err
	}
	ref, err := a.ReferenceIn(i, from.Name, args)
	if err != nil {
		return err
	}
	if req.Model, req.Release = ref.Model, ref.TagOrDigest(); ref.Environment != from.Name {
		// The tag may name another release there, so what was named is looked up first.
		r, err := i.Release(ctx, ref.Environment, ref.Model, ref.TagOrDigest())
		if err != nil {
			return err
		}
		req.Release = string(r.Digest)
	}
	if err := checkAccepted(ctx, i, from.Name, req); err != nil {
		return err
	}
	approvals := approver.Approvals{Registry: i, Environments: i.Envs, Sign: i.Keys.Sign, Now: clock.Now}
	if attested {
		approvals.Attest = i.Attest
	}
	given, err := approvals.Give(ctx, req)
	if registry.HasCode(err, registry.CodeNotFound) && ref.Environment != from.Name {
		err = registry.WithHint(err, "%s takes releases from %s: promote this one there first", req.Environment, from.Name)
	}
	if given.Evidence == "" {
		return err
	}
	if given.Requirement != nil {
		a.UI.Note("approvals of %s: %s", given.Environment, given.Requirement.Detail)
	}
	if out := a.UI.Result(approvedText(given), given); out != nil {
		return out
	}
	return err
}

func approvedText(g approver.Given) string {
	did := "approved for " + g.Environment
	if b := g.BreakGlass; b != nil {
		return ui.Plain(fmt.Sprintf("%s/%s:%s approved for %s by break-glass, skipping %s, until %s", g.From, g.Model, g.Version, g.Environment,
			strings.Join(b.Skips, ", "), b.ExpiresOn.Format(time.RFC3339))) + "\n"
	}
	if g.Approval.Withdrawn {
		did = "no longer approved by this key for " + g.Environment
		if g.Approval.Person != nil {
			did = "no longer approved by " + g.Approval.Person.String() + " for " + g.Environment
		}
	} else if !g.Approval.ExpiresOn.IsZero() {
		did += " until " + g.Approval.ExpiresOn.Format(time.RFC3339)
	}
	if p := g.Approval.Person; p != nil && !g.Approval.Withdrawn {
		did += " by " + p.String() + ", signed by the service"
	}
	return ui.Plain(fmt.Sprintf("%s/%s:%s %s", g.From, g.Model, g.Version, did)) + "\n"
}
