package main

import (
	"maps"
	"reflect"

	"github.com/spf13/cobra"

	"mlpromote.dev/mlpromote/cmd/internal/nodeverbs"
	"mlpromote.dev/mlpromote/registry"
)

// nodesCommands returns the commands that machines that run engines need, and the types of such machines.
func nodesCommands(a *app) []*cobra.Command {
	return []*cobra.Command{
		a.nodeVerbs().Resolve(), a.nodeVerbs().Pull(), a.nodeCommand(), a.nodeTypeCommand(),
	}
}

// nodesDocuments returns the types that each command prints with --output json.
func nodesDocuments() map[string][]reflect.Type {
	all := map[string][]reflect.Type{
		"node describe":    {reflect.TypeFor[registry.Node]()},
		"node list":        {reflect.TypeFor[[]registry.NodeReport]()},
		"node report":      {reflect.TypeFor[registry.NodeReport]()},
		"node-type delete": {reflect.TypeFor[deletedName]()},
		"node-type get":    {reflect.TypeFor[registry.Node]()},
		"node-type list":   {reflect.TypeFor[[]registry.Named[registry.Node]]()},
		"node-type put":    {reflect.TypeFor[registry.Named[registry.Node]]()},
	}
	maps.Copy(all, nodeverbs.Documents())
	return all
}
