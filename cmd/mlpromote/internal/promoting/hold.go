package promoting

import (
	"github.com/spf13/cobra"

	"mlpromote.dev/mlpromote/cmd/internal/command"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/program"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/wiring"
	"mlpromote.dev/mlpromote/registry/api"
)

// heldHead is a head that was held, or released.
type heldHead struct {
	Model       string `json:"model"`
	Environment string `json:"environment"`
	Hold        string `json:"hold,omitempty"` // the reason; absent if it was released
}

func holdCommand(a *program.App) *cobra.Command {
	var environment, reason string
	set := &cobra.Command{
		Use:   "set MODEL",
		Short: "Stop promotions of a model in an environment until hold release",
		Long: `A promotion is refused with exit code 4 and shows the reason. The head stays: resolve and pull
continue to work. If the head is held already, the new reason replaces the old one.`,
		Example: `  mlpromote hold set vision/digits --env prod --reason "no changes during the fair"`,
		Args:    command.Exactly("MODEL"),
		RunE: func(c *cobra.Command, args []string) error {
			return a.With(c.Context(), func(i *wiring.Instance) error {
				if err := i.SetHold(c.Context(), environment, args[0], reason); err != nil {
					return err
				}
				return a.UI.Result(args[0]+" in "+environment+" is held", heldHead{args[0], environment, reason})
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
			return a.With(c.Context(), func(i *wiring.Instance) error {
				if err := i.ReleaseHold(c.Context(), api.HoldRelease{Environment: environment, Model: args[0], Reason: reason}); err != nil {
					return err
				}
				return a.UI.Result(args[0]+" in "+environment+" is no longer held", heldHead{Model: args[0], Environment: environment})
			})
		},
	}
	for _, c := range []*cobra.Command{set, release} {
		c.Flags().StringVar(&environment, "env", "", "environment")
		c.Flags().StringVar(&reason, "reason", "", "why; stays in the history")
		command.Required(c, "env", "reason")
	}
	return command.Group("hold", "Stop promotions of a model in an environment, or allow them again", set, release)
}
