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
	"mlpromote.dev/mlpromote/registry/node"
)

func nodeTypeCommand(a *program.App) *cobra.Command {
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
	return command.Group("node-type", "Name nodes, so that a scheduler can ask for one", nodeTypePutCommand(a), get, nodeTypeListCommand(a), remove,
		nodeTypeSuggestCommand(a))
}

func nodeTypePutCommand(a *program.App) *cobra.Command {
	var nodeName string
	var runtimes []string
	put := &cobra.Command{
		Use:   "put NAME FILE",
		Short: "Create or replace a node type from a node document, or from a node of a Kubernetes cluster",
		Example: `  mlpromote node describe > node.json
  mlpromote node-type put g6.xlarge node.json
  mlpromote node-type put g6.xlarge nodes.json --node ip-10-0-3-7 --runtime onnxruntime:1.30.0`,
		Args: command.Exactly("NAME", "FILE"),
		RunE: func(c *cobra.Command, args []string) error {
			described, err := readNodeType(a, args[1], nodeName)
			if err != nil {
				return err
			}
			if err := addRuntimes(&described, runtimes); err != nil {
				return err
			}
			if err := registry.ValidateName(args[0]); err != nil {
				return err
			}
			return a.With(c.Context(), func(i *wiring.Instance) error {
				if err := i.NodeTypes.Put(c.Context(), args[0], described); err != nil {
					return err
				}
				if len(described.Runtimes) == 0 {
					a.UI.Warn("node type " + args[0] + " has no runtime, so no engine fits it: name the runtimes of such machines with --runtime NAME:VERSION")
				}
				return a.UI.Result(args[0], registry.Named[artifact.Node]{Name: args[0], Document: described})
			})
		},
	}
	put.Flags().StringVar(&nodeName, "node", "", "name of a node in FILE, which has Nodes and ResourceSlices as kubectl get -o json prints them; - is standard input")
	put.Flags().StringArrayVar(&runtimes, "runtime", nil, "NAME:VERSION such as onnxruntime:1.30.0, or a runtime document, that such machines have too; repeatable")
	return put
}

// readNodeType reads a node document, or describes a node of a cluster.
func readNodeType(a *program.App, file, nodeName string) (artifact.Node, error) {
	if nodeName == "" {
		described, err := wiring.ReadNode(file)
		if err == nil {
			return described, nil
		}
		if _, other := readFleet(a, []string{file}); other == nil {
			err = registry.Errorf(registry.CodeInvalid, "%s has nodes of a cluster, and is no node document: name one with --node NODE", file)
		}
		return artifact.Node{}, err
	}
	fleet, err := readFleet(a, []string{file})
	if err != nil {
		return artifact.Node{}, err
	}
	return fleet.Describe(nodeName)
}

// addRuntimes adds to the runtimes of a document. One that it has in another version is refused.
func addRuntimes(described *artifact.Node, named []string) error {
	for _, arg := range named {
		r, err := node.ParseRuntime(arg)
		if err != nil {
			return err
		}
		for name, version := range r.Runtimes {
			if has, ok := described.Runtimes[name]; ok && has != version {
				return registry.Errorf(registry.CodeInvalid, "--runtime %s: the document has %s %s already", arg, name, has)
			}
			if described.Runtimes == nil {
				described.Runtimes = map[string]string{}
			}
			described.Runtimes[name] = version
		}
	}
	return nil
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
				all, err := nodeTypes(c.Context(), i)
				if err != nil {
					return err
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
