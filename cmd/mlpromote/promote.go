package main

import (
	"context"

	"github.com/spf13/cobra"

	"mlpromote.dev/mlpromote/cmd/internal/command"
	"mlpromote.dev/mlpromote/cmd/internal/ui"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/wiring"
	"mlpromote.dev/mlpromote/registry"
)

func (a *app) promoteCommand() *cobra.Command {
	var req registry.PromoteRequest
	c := &cobra.Command{
		Use:   "promote [REF]",
		Short: "Promote a verified release to the next environment, byte for byte",
		Long: `Re-hashes the release, asks the destination's policy, copies release and evidence,
signs a verification summary, and moves the head last. REF defaults to the last build here.

stdout: the ref in the destination. Exit code 4: the policy refuses.`,
		Example: "  mlpromote promote --dry-run",
		Args:    command.AtMost("REF"),
		RunE: func(c *cobra.Command, args []string) error {
			return a.with(c.Context(), func(i *wiring.Instance) error { return a.promote(c.Context(), i, req, args) })
		},
	}
	c.Flags().StringVar(&req.From, "from", "", "environment to promote from (default: the only edge there is)")
	c.Flags().StringVar(&req.To, "to", "", "environment to promote to")
	c.Flags().BoolVar(&req.DryRun, "dry-run", false, "print every requirement with its state, change nothing")
	return c
}

func (a *app) promote(ctx context.Context, i *wiring.Instance, req registry.PromoteRequest, args []string) error {
	ref, err := a.reference(i, args)
	if err != nil {
		return err
	}
	req.Model, req.Ref = ref.Model, ref.TagOrDigest()
	if req.From == "" {
		req.From = ref.Environment
	}
	promotion, err := i.Promote(ctx, req)
	if err == nil { // else it says both
		a.tellHead(promotion)
	}
	if n := promotion.Decision.IgnoredCount; n > 0 {
		a.ui.Note("ignored and not copied: %s; mlpromote inspect says why", registry.Count(n, "piece of evidence", "pieces of evidence"))
	}
	if req.DryRun && promotion.Model != "" {
		if out := a.ui.Result(decisionText(promotion.Decision), movement{Promotion: promotion}); out != nil {
			return out
		}
		return err
	}
	if err != nil {
		a.refused(promotion)
		return err
	}
	a.tellCredentials(i, promotion.From, promotion.Environment)
	return a.promoted(i, promotion)
}

// tellHead says where the destination's head is, if the promotion need not move it, and that
// it is held.
func (a *app) tellHead(p registry.Promotion) {
	if p.Unchanged {
		a.ui.Note("%s is at %s already", p.Environment, p.Version)
	}
	if p.Hold != "" {
		a.ui.Note("%s in %s is held: %s; other releases wait until mlpromote hold release %s --env %s --reason TEXT",
			p.Model, p.Environment, p.Hold, p.Model, p.Environment)
	}
}

// tellCredentials says whose credentials were used on the registries of environments, where
// it was this process that went there and not a service.
func (a *app) tellCredentials(i *wiring.Instance, environments ...string) {
	if i.Local == nil {
		return
	}
	for _, environment := range environments {
		if host := i.HostOf(environment); host != "" {
			a.ui.Note("%s is on registry %s (credential: %s)", environment, host, i.Content.UsedFor(host))
		}
	}
}

func (a *app) promoted(i *wiring.Instance, p registry.Promotion) error {
	ref := registry.Ref{Host: i.HostOf(p.Environment), Environment: p.Environment, Model: p.Model, Tag: p.Version, Digest: p.Release}
	return a.ui.Result(ui.Plain(ref.String()), movement{ref.String(), p})
}

// movement is a head that moved, or with --dry-run would.
type movement struct {
	Ref string `json:"ref,omitempty"` // in the destination; absent for a dry run of promote
	registry.Promotion
}

// refused keeps what is known of a promotion or rollback that was refused: the decision.
func (a *app) refused(p registry.Promotion) {
	if p.Model != "" {
		a.ui.Partial(movement{Promotion: p})
	}
}

func decisionText(d registry.Decision) string {
	rows := [][]string{{"REQUIREMENT", "OF", "STATE", "DETAIL"}}
	for _, r := range d.Requirements {
		state := "met"
		if !r.Met {
			state = "UNMET"
		}
		rows = append(rows, []string{r.Name, r.Subject, state, r.Detail})
	}
	return ui.Table(rows)
}

func (a *app) rollbackCommand() *cobra.Command {
	var req registry.RollbackRequest
	c := &cobra.Command{
		Use:   "rollback MODEL",
		Short: "Move a head back to an earlier release, and set a hold",
		Long: `Goes only to an earlier head of the same environment, judged by the verification
summary that it had then. The environment is then held: promotions wait until
mlpromote hold release. It warns of engines that resolve would refuse after it, and of
node types, and this machine, that have an engine now and would have none.`,
		Example: `  mlpromote rollback vision/digits --env prod --reason "p99 doubled"`,
		Args:    command.Exactly("MODEL"),
		RunE: func(c *cobra.Command, args []string) error {
			req.Model = args[0]
			return a.with(c.Context(), func(i *wiring.Instance) error {
				if here, err := a.nodeVerbs().Machine(c.Context()); err == nil { // only warned about
					req.Node = &here
				}
				promotion, err := i.Rollback(c.Context(), req)
				for _, warning := range promotion.Warnings {
					a.ui.Note("warning: %s", warning)
				}
				if err != nil {
					a.refused(promotion)
					return err
				}
				if req.DryRun {
					a.ui.Note("dry run: nothing has changed")
					return a.promoted(i, promotion)
				}
				a.ui.Note("%s is held at %s: mlpromote hold release %s --env %s --reason TEXT lets promotions move it again",
					req.Environment, promotion.Version, req.Model, req.Environment)
				return a.promoted(i, promotion)
			})
		},
	}
	c.Flags().StringVar(&req.Environment, "env", "", "environment")
	c.Flags().StringVar(&req.Version, "to-version", "", "version to return to (default: the head before)")
	c.Flags().StringVar(&req.Reason, "reason", "", "why; stays in the history")
	c.Flags().BoolVar(&req.DryRun, "dry-run", false, "say where it goes back to, with warnings, and change nothing")
	command.Required(c, "env", "reason")
	return c
}

// heldHead is a head that was held, or let go.
type heldHead struct {
	Model       string `json:"model"`
	Environment string `json:"environment"`
	Hold        string `json:"hold,omitempty"` // the reason; absent where it was let go
}

func (a *app) holdCommand() *cobra.Command {
	var environment, reason string
	set := &cobra.Command{
		Use:   "set MODEL",
		Short: "Stop promotions of a model in an environment until hold release",
		Long: `Whoever promotes is refused with exit code 4 and sees the reason. The head stays what it is:
resolve and pull go on. A head that is held already gets the new reason.`,
		Example: `  mlpromote hold set vision/digits --env prod --reason "no changes during the fair"`,
		Args:    command.Exactly("MODEL"),
		RunE: func(c *cobra.Command, args []string) error {
			return a.with(c.Context(), func(i *wiring.Instance) error {
				if err := i.SetHold(c.Context(), environment, args[0], reason); err != nil {
					return err
				}
				return a.ui.Result(args[0]+" in "+environment+" is held", heldHead{args[0], environment, reason})
			})
		},
	}
	release := &cobra.Command{
		Use:   "release MODEL",
		Short: "Release a hold, so that promotions can move the head again",
		Long: `Ends the hold that a rollback or hold set has put on a head. Exit code 8: the model has no head
there, or it is not held.`,
		Example: `  mlpromote hold release vision/digits --env prod --reason "the fair is over"`,
		Args:    command.Exactly("MODEL"),
		RunE: func(c *cobra.Command, args []string) error {
			return a.with(c.Context(), func(i *wiring.Instance) error {
				if err := i.ReleaseHold(c.Context(), environment, args[0], reason); err != nil {
					return err
				}
				return a.ui.Result(args[0]+" in "+environment+" is no longer held", heldHead{Model: args[0], Environment: environment})
			})
		},
	}
	for _, c := range []*cobra.Command{set, release} {
		c.Flags().StringVar(&environment, "env", "", "environment")
		c.Flags().StringVar(&reason, "reason", "", "why; stays in the history")
		command.Required(c, "env", "reason")
	}
	return command.Group("hold", "Keep promotions from moving a head, or let them again", set, release)
}
