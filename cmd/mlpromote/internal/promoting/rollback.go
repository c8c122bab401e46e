package promoting

import (
	"cmp"

	"github.com/spf13/cobra"

	"mlpromote.dev/mlpromote/cmd/internal/command"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/program"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/wiring"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
)

// rollbackObstacles is why a rollback is refused, with the page of the release that it would go back to; nil if it got
// no further than looking for one.
func rollbackObstacles(i *wiring.Instance, p api.Promotion, refused error) []api.Obstacle {
	if p.Release == "" {
		return nil
	}
	o := api.Obstacle{Code: registry.CodeOf(refused), Message: registry.PlainText(refused.Error())}
	if i.Pages != "" {
		o.URL = api.ReleasePage(i.Pages, p.Model, p.Release, p.Environment)
	}
	return []api.Obstacle{o}
}

func rollbackCommand(a *program.App) *cobra.Command {
	var req api.RollbackRequest
	c := &cobra.Command{
		Use:   "rollback MODEL",
		Short: "Move a head back to an earlier release, and set a hold",
		Long: `Moves only to an earlier head of the same environment, if the verification summary of that
time must still count. The environment is then held: promotions wait until mlpromote hold
release. Names the node types that get another engine, and this machine, and warns about those
that lose theirs and about engines that resolve would refuse afterwards. It asks for no approval,
and old reports, a freeze and retired keys do not stop it.`,
		Example: `  mlpromote rollback vision/digits --env prod --reason "p99 doubled"`,
		Args:    command.Exactly("MODEL"),
		RunE: func(c *cobra.Command, args []string) error {
			req.Model = args[0]
			return a.With(c.Context(), func(i *wiring.Instance) error {
				if here, err := a.NodeVerbs().Machine(c.Context()); err == nil { // only warned about
					req.Node = &here
				}
				promotion, err := i.Rollback(c.Context(), req)
				for _, warning := range promotion.Warnings {
					a.UI.Note("warning: %s", warning)
				}
				for _, n := range promotion.Nodes {
					a.UI.Note("%s: %s -> %s", n.Node, cmp.Or(n.From, "no engine"), cmp.Or(n.To, "no engine"))
				}
				if err != nil {
					refused(a, promotion, rollbackObstacles(i, promotion, err))
					return err
				}
				if req.DryRun {
					a.UI.Note("dry run: nothing has changed")
					return promoted(a, i, promotion)
				}
				a.UI.Note("%s is held at %s: mlpromote hold release %s --env %s --reason TEXT lets promotions move it again",
					req.Environment, promotion.Version, req.Model, req.Environment)
				return promoted(a, i, promotion)
			})
		},
	}
	c.Flags().StringVar(&req.Environment, "env", "", "environment")
	c.Flags().StringVar(&req.Version, "to-version", "", "version to return to (default: the head before)")
	c.Flags().StringVar(&req.Reason, "reason", "", "why; stays in the history")
	c.Flags().BoolVar(&req.DryRun, "dry-run", false, "print the release that it would go back to, with warnings, and change nothing")
	command.Required(c, "env", "reason")
	return c
}
