package main

import (
	"context"

	"github.com/spf13/cobra"

	"mlpromote.dev/mlpromote/registry"
)

func (a *app) promoteCommand() *cobra.Command {
	var req registry.PromoteRequest
	c := &cobra.Command{
		Use:   "promote [REF]",
		Short: "Move a proven release to the next environment, byte for byte",
		Long: `Re-hashes the release, asks the destination's policy, copies release and evidence,
signs a verification summary, and moves the head last. REF defaults to the last build here.

stdout: the reference in the destination. Exit code 4: the policy says no.`,
		Example: "  mlpromote promote --dry-run",
		Args:    atMost("REF"),
		RunE: func(c *cobra.Command, args []string) error {
			return a.with(c.Context(), func(i *instance) error { return a.promote(c.Context(), i, req, args) })
		},
	}
	c.Flags().StringVar(&req.From, "from", "", "environment to promote from (default: the only edge there is)")
	c.Flags().StringVar(&req.To, "to", "", "environment to promote to")
	c.Flags().BoolVar(&req.DryRun, "dry-run", false, "print every requirement with its state, change nothing")
	return c
}

func (a *app) promote(ctx context.Context, i *instance, req registry.PromoteRequest, args []string) error {
	ref, err := a.reference(i, args)
	if err != nil {
		return err
	}
	req.Model, req.Reference = ref.Model, ref.TagOrDigest()
	if req.From == "" {
		req.From = ref.Environment
	}
	promotion, err := i.Promote(ctx, req)
	if promotion.Already {
		a.ui.note("%s is at %s already", promotion.Environment, promotion.Version)
	}
	if n := len(promotion.Decision.Ignored); n > 0 {
		a.ui.note("%d pieces of evidence do not count and are not copied; mlpromote inspect says why", n)
	}
	if req.DryRun && promotion.Model != "" {
		if out := a.ui.result(decisionText(promotion.Decision), promotion); out != nil {
			return out
		}
		return err
	}
	if err != nil {
		return err
	}
	a.tellCredentials(i, promotion.From, promotion.Environment)
	return a.promoted(i, promotion)
}

// tellCredentials says whose credentials were used on the registries of environments, where
// it was this process that went there and not a service.
func (a *app) tellCredentials(i *instance, environments ...string) {
	if i.local == nil {
		return
	}
	for _, environment := range environments {
		if host := i.hostOf(environment); host != "" {
			a.ui.note("%s is on registry %s (credential: %s)", environment, host, i.content.usedFor(host))
		}
	}
}

func (a *app) promoted(i *instance, p registry.Promotion) error {
	ref := registry.Reference{Host: i.hostOf(p.Environment), Environment: p.Environment, Model: p.Model, Tag: p.Version, Digest: p.Release}
	return a.ui.result(ref.String(), struct {
		Reference string `json:"reference"`
		registry.Promotion
	}{ref.String(), p})
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
	return table(rows)
}

func (a *app) rollbackCommand() *cobra.Command {
	var req registry.RollbackRequest
	c := &cobra.Command{
		Use:   "rollback MODEL",
		Short: "Move an environment's head back, and hold it there",
		Long: `Goes only to an earlier head of the same environment, judged by the verification
summary that it had then. The environment is then held: promotions wait until
mlpromote hold release.`,
		Example: `  mlpromote rollback vision/digits --env prod --reason "p99 doubled"`,
		Args:    exactly("MODEL"),
		RunE: func(c *cobra.Command, args []string) error {
			req.Model = args[0]
			return a.with(c.Context(), func(i *instance) error {
				promotion, err := i.Rollback(c.Context(), req)
				if err != nil {
					return err
				}
				a.ui.note("%s is held at %s: mlpromote hold release %s --env %s --reason TEXT lets promotions move it again",
					req.Environment, promotion.Version, req.Model, req.Environment)
				return a.promoted(i, promotion)
			})
		},
	}
	c.Flags().StringVar(&req.Environment, "env", "", "environment")
	c.Flags().StringVar(&req.Version, "to", "", "version to return to (default: the head before)")
	c.Flags().StringVar(&req.Reason, "reason", "", "why; stays in the history")
	required(c, "env", "reason")
	return c
}

func (a *app) holdCommand() *cobra.Command {
	var environment, reason string
	release := &cobra.Command{
		Use:   "release MODEL",
		Short: "Let promotions move a held head again",
		Args:  exactly("MODEL"),
		RunE: func(c *cobra.Command, args []string) error {
			return a.with(c.Context(), func(i *instance) error {
				if err := i.ReleaseHold(c.Context(), environment, args[0], reason); err != nil {
					return err
				}
				return a.ui.result(args[0]+" in "+environment+" is no longer held", map[string]string{"model": args[0], "environment": environment})
			})
		},
	}
	release.Flags().StringVar(&environment, "env", "", "environment")
	release.Flags().StringVar(&reason, "reason", "", "why; stays in the history")
	required(release, "env", "reason")
	return group("hold", "Work with the hold that a rollback sets", release)
}
