package operating

import (
	"github.com/spf13/cobra"

	"mlpromote.dev/mlpromote/cmd/internal/command"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/program"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/wiring"
	"mlpromote.dev/mlpromote/registry"
)

// reindexed is how many manifests were read.
type reindexed struct {
	Manifests int `json:"manifests"`
}

func reindexCommand(a *program.App) *cobra.Command {
	return &cobra.Command{
		Use:   "reindex",
		Short: "Rebuild the tables that are derived from manifests and history",
		Long: `Empties the tables that repeat facts from manifests (who refers to whom, artifact types)
and fills them again from the stored bytes. Tags, heads, holds and history are facts and stay.`,
		Example: "  mlpromote reindex",
		Args:    command.Exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			return a.With(c.Context(), func(i *wiring.Instance) error {
				if i.Local == nil {
					return registry.Errorf(registry.CodeInvalid, "reindex works on a data directory: stop the service, then --data DIR")
				}
				n, err := i.Local.Reindex(c.Context())
				if err != nil {
					return err
				}
				return a.UI.Result(registry.Count(n, "manifest"), reindexed{n})
			})
		},
	}
}
