// Package nodes has the verbs that machines with engines need, and those for types of such machines: resolve, pull, node,
// node-type.
package nodes

import (
	"maps"
	"reflect"

	"github.com/spf13/cobra"

	"mlpromote.dev/mlpromote/cmd/internal/nodeverbs"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/program"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/node/cluster"
	"mlpromote.dev/mlpromote/registry/storage"
)

// Commands returns the commands that machines that run engines need, and the types of such machines.
func Commands(a *program.App) []*cobra.Command {
	return []*cobra.Command{
		a.NodeVerbs().Resolve(), a.NodeVerbs().Pull(), nodeCommand(a), nodeTypeCommand(a),
	}
}

// Documents returns the types that each command prints with --output json.
func Documents() map[string][]reflect.Type {
	all := map[string][]reflect.Type{
		"node describe":     {reflect.TypeFor[artifact.Node]()},
		"node list":         {reflect.TypeFor[[]storage.NodeReport]()},
		"node report":       {reflect.TypeFor[storage.NodeReport]()},
		"node-type delete":  {reflect.TypeFor[deletedName]()},
		"node-type get":     {reflect.TypeFor[artifact.Node]()},
		"node-type list":    {reflect.TypeFor[[]registry.Named[artifact.Node]]()},
		"node-type put":     {reflect.TypeFor[registry.Named[artifact.Node]]()},
		"node-type suggest": {reflect.TypeFor[cluster.Report]()},
	}
	maps.Copy(all, nodeverbs.Documents())
	return all
}
