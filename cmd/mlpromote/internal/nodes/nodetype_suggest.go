package nodes

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"mlpromote.dev/mlpromote/cmd/internal/command"
	"mlpromote.dev/mlpromote/cmd/internal/ui"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/program"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/wiring"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/node/cluster"
	"mlpromote.dev/mlpromote/registry/storage"
)

// standardInput is the file name of standard input.
const standardInput = "-"

func nodeTypeSuggestCommand(a *program.App) *cobra.Command {
	return &cobra.Command{
		Use:   "suggest FILE...",
		Short: "Group the nodes of a Kubernetes cluster that are alike, and propose names for them",
		Long: `Reads Nodes and ResourceSlices as kubectl get -o json prints them; - is standard input. Nodes are
alike if no target tells them apart: the same system, processor level and features, and accelerators,
by the labels of Node Feature Discovery and GPU feature discovery and by the devices that DRA drivers
publish. Versions are compared as numbers. For each group it prints

- a name for a node type, which depends on the facts alone;
- the registered node types with the same facts, or the nearest one and where it differs;
- the facts that nothing in the cluster states, and what to install;
- the facts about which labels and ResourceSlices differ.

Nothing is registered. mlpromote node-type put NAME FILE --node NODE does that.`,
		Example: `  kubectl get nodes,resourceslices -o json | mlpromote node-type suggest -
  mlpromote node-type suggest nodes.json slices.json --output json`,
		Args: atLeastOne("FILE"),
		RunE: func(c *cobra.Command, args []string) error {
			fleet, err := readFleet(a, args)
			if err != nil {
				return err
			}
			types, err := knownNodeTypes(c.Context(), a)
			if err != nil {
				return err
			}
			report := fleet.Group(types)
			for _, u := range report.Unread {
				a.UI.Note("left out: %s: %s", ui.Plain(u.Object), ui.Plain(u.Why))
			}
			if len(report.Groups) == 0 {
				a.UI.Note("there is no node in %s", strings.Join(args, ", "))
			}
			if len(report.Groups) > 0 {
				a.UI.Note("nothing was registered. Labels do not name runtimes: mlpromote node-type put NAME FILE --node NODE --runtime NAME:VERSION")
			}
			return a.UI.Result(groupsText(report.Groups), report)
		},
	}
}

// atLeastOne refuses a command line without an argument.
func atLeastOne(name string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) == 0 {
			return command.Exactly(name)(c, args)
		}
		return nil
	}
}

// readFleet reads the files that kubectl wrote.
func readFleet(a *program.App, files []string) (*cluster.Fleet, error) {
	var fleet cluster.Fleet
	for _, file := range files {
		if err := addFile(a, &fleet, file); err != nil {
			return nil, err
		}
	}
	return &fleet, nil
}

func addFile(a *program.App, fleet *cluster.Fleet, file string) error {
	from := a.Stdin
	name := "standard input"
	if file != standardInput {
		f, err := os.Open(file)
		if os.IsNotExist(err) {
			return registry.Errorf(registry.CodeNotFound, "%s: there is no such file", file)
		}
		if err != nil {
			return registry.Errorf(registry.CodeInvalid, "%w", err)
		}
		defer f.Close()
		from, name = f, file
	}
	return fleet.Add(name, from)
}

// knownNodeTypes lists the node types to compare with. Without a registry here there are none, which is no reason to refuse
// a question about a cluster.
func knownNodeTypes(ctx context.Context, a *program.App) (types []registry.Named[artifact.Node], err error) {
	if a.Registry == "" && a.Database == "" && !a.At().HasDatabaseFile() {
		a.UI.Note("no registry in %s: the groups are compared with no node types", a.Data)
		return nil, nil
	}
	err = a.With(ctx, func(i *wiring.Instance) error {
		types, err = nodeTypes(ctx, i)
		return err
	})
	return types, err
}

// nodeTypes lists the registered node types.
func nodeTypes(ctx context.Context, i *wiring.Instance) ([]registry.Named[artifact.Node], error) {
	var all []registry.Named[artifact.Node]
	for t, err := range storage.Rows(ctx, i.NodeTypes, "") {
		if err != nil {
			return nil, err
		}
		all = append(all, t)
	}
	return all, nil
}

// groupsText is a table of the groups, with the remarks on each below it.
func groupsText(groups []cluster.Group) string {
	rows := [][]string{{"NAME", "NODES", "EXAMPLES", "NODE TYPES"}}
	var remarks []string
	for _, g := range groups {
		examples := strings.Join(g.Nodes[:min(len(g.Nodes), 3)], " ")
		if len(g.Nodes) > 3 {
			examples += " ..."
		}
		rows = append(rows, []string{g.Name, fmt.Sprint(len(g.Nodes)), examples, ui.Dash(strings.Join(g.NodeTypes, " "))})
		for _, m := range g.Missing {
			remarks = append(remarks, fmt.Sprintf("%s: missing %s: %s", g.Name, m.Fact, m.Do))
		}
		if near := g.Nearest; near != nil {
			for _, d := range near.Differs {
				remarks = append(remarks, fmt.Sprintf("%s: unlike node type %s: %s: %s there, %s here", g.Name, near.NodeType, d.Requirement, ui.Dash(d.Need), ui.Dash(d.Have)))
			}
		}
		remarks = append(remarks, conflictLines(g)...)
	}
	text := ui.Table(rows)
	for _, remark := range remarks {
		text += ui.Plain(remark) + "\n"
	}
	return text
}

// conflictLines names each conflict once, with a node and the number of others.
func conflictLines(g cluster.Group) []string {
	var lines []string
	counts := map[cluster.Conflict]int{}
	for _, c := range g.Conflicts {
		c.Node = ""
		counts[c]++
	}
	for _, c := range g.Conflicts {
		on := "node " + c.Node
		c.Node = ""
		count := counts[c]
		if count == 0 { // its line is there
			continue
		}
		counts[c] = 0
		if count > 1 {
			on += fmt.Sprintf(" and %d more", count-1)
		}
		lines = append(lines, fmt.Sprintf("%s: conflict on %s: %s: %s by label, %s by ResourceSlice", g.Name, on, c.Fact, c.Label, c.Slice))
	}
	return lines
}
