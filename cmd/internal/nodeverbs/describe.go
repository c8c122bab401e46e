package nodeverbs

import (
	"encoding/json"

	"github.com/spf13/cobra"

	"mlpromote.dev/mlpromote/cmd/internal/command"
)

// Describe prints the node document of this machine. within is what stands before the verb on a command line:
// "mlpromote node".
func (v Verbs) Describe(within string) *cobra.Command {
	return &cobra.Command{
		Use:   "describe",
		Short: "Describe this machine: processor, memory, accelerators, runtimes",
		Long: `Prints the node document of this machine, which resolve --node reads. Run it inside
a serving container to get the runtimes of that container.`,
		Example: "  " + within + " describe > node.json",
		Args:    command.Exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			described, err := v.Machine(c.Context())
			if err != nil {
				return err
			}
			text, err := json.MarshalIndent(described, "", "  ")
			if err != nil {
				return err
			}
			return v.UI.Result(string(text), described)
		},
	}
}
