package promoting

import (
	"time"

	"github.com/spf13/cobra"

	"mlpromote.dev/mlpromote/cmd/internal/command"
	"mlpromote.dev/mlpromote/cmd/internal/ui"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/program"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/wiring"
)

func listCommand(a *program.App) *cobra.Command {
	var environment, model string
	c := &cobra.Command{
		Use:     "list",
		Short:   "List the heads of all environments",
		Example: "  mlpromote list --env prod",
		Args:    command.Exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			return a.With(c.Context(), func(i *wiring.Instance) error {
				heads, err := i.Heads(c.Context(), environment, model)
				if err != nil {
					return err
				}
				if err := i.Agreed(c.Context()); err != nil { // what is listed is so all the same
					a.UI.Note("warning: %v", err)
				}
				rows := [][]string{{"ENVIRONMENT", "MODEL", "VERSION", "SINCE", "HOLD", "DIGEST"}}
				for _, h := range heads {
					rows = append(rows, []string{h.Environment, h.Model, h.Version, h.Since.UTC().Format(time.DateTime), ui.Dash(h.Hold), string(h.Release)})
					if h.BreakGlass != "" {
						a.UI.Note("%s in %s is at %s by %s", h.Model, h.Environment, h.Version, h.BreakGlass)
					}
				}
				return a.UI.Result(ui.Table(rows), program.Listed(heads))
			})
		},
	}
	c.Flags().StringVar(&environment, "env", "", "only this environment")
	c.Flags().StringVar(&model, "model", "", "only this model")
	return c
}
