package nodeverbs

import (
	"os"

	"github.com/spf13/cobra"

	"mlpromote.dev/mlpromote/cmd/internal/command"
	"mlpromote.dev/mlpromote/cmd/internal/connect"
	"mlpromote.dev/mlpromote/cmd/internal/ui"
	"mlpromote.dev/mlpromote/pipeline/pull"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/node"
	"mlpromote.dev/mlpromote/registry/oci"
	"mlpromote.dev/mlpromote/registry/storage"
)

// Report tells the service which engine lies on this node. within is what comes before its name on the command line.
func (v Verbs) Report(within string) *cobra.Command {
	var name, nodeType, machine string
	c := &cobra.Command{
		Use:   "report DIR",
		Short: "Tell the service which engine this node has",
		Long: `Compares the folder with its manifest, and reports the release and the engine in it, so that
mlpromote quarantine can list the nodes that have a quarantined release. It does not prove that the
engine runs, and it judges nothing: mlpromote trust does. A report expires; repeat it, for example
every hour. The service must take reports: mlpromote serve --node-reports.

Machines that share a token cannot replace reports of one another: each sends a digest of its
/etc/machine-id. In a container, mount that file of the host, or name another one of this machine.`,
		Example: "  " + within + " report /srv/digits --name edge-7 --node-type g6.xlarge",
		Args:    command.Exactly("DIR"),
		RunE: func(c *cobra.Command, args []string) error {
			if name == "" {
				var err error
				if name, err = os.Hostname(); err != nil {
					return registry.Errorf(registry.CodeInvalid, "--name: this machine has no host name: %w", err)
				}
			}
			proof, err := node.Machine(machine)
			if err != nil {
				return err
			}
			record, ref, err := pull.Checker{ReadPart: oci.ReadPart}.Inventory(args[0])
			if err != nil {
				return err
			}
			return v.With(c.Context(), func(r *connect.Registry) error {
				stored, err := r.Nodes.ReportNode(c.Context(), storage.NodeReport{
					Node: name, NodeType: nodeType, Environment: ref.Environment, Model: ref.Model, Release: record.Release, Engine: ref.Digest, Machine: proof,
				})
				if err != nil {
					return err
				}
				return v.UI.Result(ui.Plain(NodeText(stored)), stored)
			})
		},
	}
	c.Flags().StringVar(&name, "name", "", "name of the node (default: the host name)")
	c.Flags().StringVar(&nodeType, "node-type", "", "node type of the node, if it has one")
	c.Flags().StringVar(&machine, "machine-id", node.MachineID, "file that tells this machine from others with its name and token")
	return c
}

// NodeText is one report as a line for people.
func NodeText(r storage.NodeReport) string {
	text := "node " + r.Node
	if r.NodeType != "" {
		text += " (" + r.NodeType + ")"
	}
	const layout = "2006-01-02 15:04"
	until := ", counts until "
	if r.Silent {
		until = ", silent since "
	}
	has := r.Label + " of " + r.Environment + "/" + r.Model + ":" + r.Version
	return text + ": has " + has + ", as " + r.Reporter + " reported " + r.ReportedOn.UTC().Format(layout) +
		until + r.ExpiresOn.UTC().Format(layout) + " UTC"
}
