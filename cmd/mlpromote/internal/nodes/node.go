package nodes

import (
	"github.com/spf13/cobra"

	"mlpromote.dev/mlpromote/cmd/internal/command"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/program"
)

func nodeCommand(a *program.App) *cobra.Command {
	return command.Group("node", "Describe this machine, report its engine, and list what nodes reported",
		a.NodeVerbs().Describe("mlpromote node"), a.NodeVerbs().Report("mlpromote node"), nodeListCommand(a))
}
