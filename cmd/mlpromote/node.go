package main

import (
	"encoding/json"

	"github.com/spf13/cobra"
)

func (a *app) nodeCommand() *cobra.Command {
	return group("node", "Work with node documents", &cobra.Command{
		Use:   "describe",
		Short: "Describe this machine: processor, memory, accelerators, runtimes",
		Long: `Prints the node document of this machine, which resolve --node reads. Run inside a
serving container it names the runtimes of that container.`,
		Example: "  mlpromote node describe > node.json",
		Args:    exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			described, err := a.describe(c.Context(), a.installedRuntimes())
			if err != nil {
				return err
			}
			text, err := json.MarshalIndent(described, "", "  ")
			if err != nil {
				return err
			}
			return a.ui.Result(string(text), described)
		},
	})
}
