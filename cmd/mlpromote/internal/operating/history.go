package operating

import (
	"time"

	"github.com/spf13/cobra"

	"mlpromote.dev/mlpromote/cmd/internal/command"
	"mlpromote.dev/mlpromote/cmd/internal/ui"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/auditing"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/program"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/wiring"
	"mlpromote.dev/mlpromote/registry/history"
)

func historyCommand(a *program.App) *cobra.Command {
	audit := auditing.Verbs{App: a}
	return command.Group("history", "List, check, prove and export the history", audit.Verify(), historyListCommand(a), historyAcceptCommand(a),
		audit.Checkpoint(), audit.Prove(), audit.CheckProof(), audit.Export())
}

// acceptedHistory is what promotions go on with.
type acceptedHistory struct {
	Model       string `json:"model"`
	Environment string `json:"environment"`
}

func historyAcceptCommand(a *program.App) *cobra.Command {
	var model, environment, reason string
	c := &cobra.Command{
		Use:   "accept",
		Short: "Accept a head that the history does not explain, to allow promotions again",
		Long: `For what history verify found and somebody has looked into, such as events that a restored
backup does not have. Records the reason in the history. Takes an administrator.`,
		Example: `  mlpromote history accept --model vision/digits --env prod --reason "restored from Tuesday's backup"`,
		Args:    command.Exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			return a.With(c.Context(), func(i *wiring.Instance) error {
				if err := i.AcceptHistory(c.Context(), environment, model, reason); err != nil {
					return err
				}
				return a.UI.Result("the unexplained state of "+model+" in "+environment+" is accepted", acceptedHistory{model, environment})
			})
		},
	}
	c.Flags().StringVar(&model, "model", "", "model")
	c.Flags().StringVar(&environment, "env", "", "environment")
	c.Flags().StringVar(&reason, "reason", "", "why; stays in the history")
	command.Required(c, "model", "env", "reason")
	return c
}

func historyListCommand(a *program.App) *cobra.Command {
	var q history.HistoryQuery
	var since time.Duration
	var follow bool
	c := &cobra.Command{
		Use:   "list",
		Short: "List the events of the history, oldest first",
		Long: `Prints the history. With --follow it goes on with every event as it comes, one line each (with
--output json one JSON document each), until it is interrupted, and then exits with 0. A data
directory is asked every second; a service sends events at once.`,
		Example: `  mlpromote history list --model vision/digits --env prod --since 24h
  mlpromote history list --follow --limit 10 --output json`,
		Args: command.Exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			if follow {
				return followHistory(c.Context(), a, q, since)
			}
			return a.With(c.Context(), func(i *wiring.Instance) error {
				events, _, err := newestEvents(c.Context(), i, q, since)
				if err != nil {
					return err
				}
				rows := [][]string{{"EVENT", "TIME", "WHO", "WHAT", "ENVIRONMENT", "MODEL", "VERSION", "DETAIL"}}
				for _, e := range events {
					rows = append(rows, eventCells(e))
				}
				return a.UI.Result(ui.Table(rows), program.Listed(events))
			})
		},
	}
	c.Flags().StringVar(&q.Environment, "env", "", "only this environment")
	c.Flags().StringVar(&q.Model, "model", "", "only this model")
	c.Flags().IntVar(&q.Limit, "limit", 0, "only so many of the newest (default: all)")
	c.Flags().DurationVar(&since, "since", 0, "only newer events, such as 24h (default: all)")
	c.Flags().BoolVar(&follow, "follow", false, "go on with what happens next, until interrupted")
	return c
}
