package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"mlpromote.dev/mlpromote/cmd/internal/command"
	"mlpromote.dev/mlpromote/cmd/internal/nodeverbs"
	"mlpromote.dev/mlpromote/cmd/internal/ui"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/wiring"
	"mlpromote.dev/mlpromote/registry"
)

func (a *app) nodeListCommand() *cobra.Command {
	var environment, model string
	list := &cobra.Command{
		Use:   "list --env ENV",
		Short: "List the nodes that report an engine, and which",
		Long: `Shows the reports of nodes by mlpromote-node report, if the service takes reports. A node
without a report, or with an expired one, is not listed.`,
		Example: "  mlpromote node list --env prod --model vision/digits",
		Args:    command.Exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			return a.with(c.Context(), func(i *wiring.Instance) error {
				if _, err := i.Envs.Find(environment); err != nil {
					return err
				}
				all, err := registry.AllNodeReports(c.Context(), i.Nodes, environment, model)
				if err != nil {
					return err
				}
				if len(all) == 0 {
					a.ui.Note("no report of a node counts now: nodes report with mlpromote-node report DIR, if the service runs with --node-reports")
				}
				return a.ui.Result(strings.Join(nodeLines("", all), "\n"), listed(all))
			})
		},
	}
	list.Flags().StringVar(&environment, "env", "", "environment")
	list.Flags().StringVar(&model, "model", "", "model (default: all)")
	command.Required(list, "env")
	return list
}

// nodeLines has a line for each report.
func nodeLines(indent string, reports []registry.NodeReport) []string {
	var lines []string
	shared := registry.SharedNames(reports)
	for _, r := range reports {
		line := indent + nodeverbs.NodeText(r)
		if n := shared[r.NodeName()]; n > 0 {
			line += fmt.Sprintf("; %d machines or callers report by this name", n)
		}
		lines = append(lines, ui.Plain(line))
	}
	return lines
}
