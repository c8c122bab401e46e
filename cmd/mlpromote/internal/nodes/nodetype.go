package nodes

import (
	"encoding/json"

	"github.com/spf13/cobra"

	"mlpromote.dev/mlpromote/cmd/internal/command"
	"mlpromote.dev/mlpromote/cmd/internal/ui"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/program"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/wiring"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/storage"
)

func nodeTypeCommand(a *program.App) *cobra.Command {
	put := &cobra.Command{
		Use:     "put NAME FILE",
		Short:   "Create or replace a node type from a node document",
		Example: "  mlpromote node describe > node.json\n  mlpromote node-type put g6.xlarge node.json",
		Args:    command.Exactly("NAME", "FILE"),
		RunE: func(c *cobra.Command, args []string) error {
			described, err := wiring.ReadNode(args[1])
			if err != nil {
				return err
			}
			if err := registry.ValidateName(args[0]); err != nil {
				return err
			}
			return a.With(c.Context(), func(i *wiring.Instance) error {
				if err := i.NodeTypes.Put(c.Context(), args[0], described); err != nil {
					return err
				}
				return a.UI.Result(args[0], registry.Named[artifact.Node]{Name: args[0], Document: described})
			})
		},
	}
	get := &cobra.Command{
		Use:     "get NAME",
		Short:   "Print the node document of a node type",
		Example: "  mlpromote node-type get g6.xlarge",
		Args:    command.Exactly("NAME"),
		RunE: func(c *cobra.Command, args []string) error {
			return a.With(c.Context(), func(i *wiring.Instance) error {
				described, err := i.NodeTypes.Get(c.Context(), args[0])
				if err != nil {
					return err
				}
				text, err := json.MarshalIndent(described, "", "  ")
				if err != nil {
					return err
				}
				return a.UI.Result(string(text), described)
			})
		},
	}
	remove := &cobra.Command{
		Use:     "delete NAME",
		Short:   "Delete a node type",
		Example: "  mlpromote node-type delete g6.xlarge",
		Args:    command.Exactly("NAME"),
		RunE: func(c *cobra.Command, args []string) error {
			return a.With(c.Context(), func(i *wiring.Instance) error {
				if err := i.NodeTypes.Delete(c.Context(), args[0]); err != nil {
					return err
				}
				return a.UI.Result(args[0], deletedName{args[0]})
			})
		},
	}
	return command.Group("node-type", "Name nodes, so that a scheduler can ask for one", put, get, nodeTypeListCommand(a), remove)
}

// deletedName is a node type that is gone.
type deletedName struct {
	Deleted string `json:"deleted"`
}

func nodeTypeListCommand(a *program.App) *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Short:   "List the node types",
		Example: "  mlpromote node-type list",
		Args:    command.Exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			return a.With(c.Context(), func(i *wiring.Instance) error {
				var all []registry.Named[artifact.Node]
				for t, err := range storage.Rows(c.Context(), i.NodeTypes, "") {
					if err != nil {
						return err
					}
					all = append(all, t)
				}
				return a.UI.Result(nodeTypesText(all), program.Listed(all))
			})
		},
	}
}

func nodeTypesText(all []registry.Named[artifact.Node]) string {
	rows := [][]string{{"NAME", "OS", "ARCH", "LEVEL", "ACCELERATORS"}}
	for _, t := range all {
		accelerators := ""
		for _, device := range t.Document.Accelerators {
			accelerators += device.Product + " "
		}
		rows = append(rows, []string{t.Name, t.Document.OS, t.Document.CPU.Arch, ui.Dash(t.Document.CPU.Level), ui.Dash(accelerators)})
	}
	return ui.Table(rows)
}
