package nodes

import (
	"strings"

	"github.com/spf13/cobra"

	"mlpromote.dev/mlpromote/cmd/internal/command"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/printing"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/program"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/wiring"
	"mlpromote.dev/mlpromote/registry/storage"
)

func nodeListCommand(a *program.App) *cobra.Command {
	var environment, model string
	list := &cobra.Command{
		Use:   "list --env ENV",
		Short: "List the nodes that report an engine, and which",
		Long: `Shows the reports of nodes by mlpromote-node report, if the service takes reports. A node
without a report, or with an expired one, is not listed.`,
		Example: "  mlpromote node list --env prod --model vision/digits",
		Args:    command.Exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			return a.With(c.Context(), func(i *wiring.Instance) error {
				if _, err := i.Envs.Find(environment); err != nil {
					return err
				}
				all, err := storage.AllNodeReports(c.Context(), i.Nodes, environment, model)
				if err != nil {
					return err
				}
				if len(all) == 0 {
					a.UI.Note("no report of a node counts now: nodes report with mlpromote-node report DIR, if the service runs with --node-reports")
				}
				return a.UI.Result(strings.Join(printing.NodeLines("", all), "\n"), program.Listed(all))
			})
		},
	}
	list.Flags().StringVar(&environment, "env", "", "environment")
	list.Flags().StringVar(&model, "model", "", "model (default: all)")
	command.Required(list, "env")
	return list
}
