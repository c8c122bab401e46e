package main

import (
	"reflect"

	"github.com/spf13/cobra"

	"mlpromote.dev/mlpromote/pipeline/approver"
	"mlpromote.dev/mlpromote/registry"
)

// promotingCommands returns the commands that move releases from one environment to the next.
func promotingCommands(a *app) []*cobra.Command {
	return []*cobra.Command{
		a.promoteCommand(), a.approveCommand(), a.rollbackCommand(), a.holdCommand(), a.listCommand(),
	}
}

// promotingDocuments returns the types that each command prints with --output json.
func promotingDocuments() map[string][]reflect.Type {
	return map[string][]reflect.Type{
		"approve":      {reflect.TypeFor[approver.Given]()},
		"hold release": {reflect.TypeFor[heldHead]()},
		"hold set":     {reflect.TypeFor[heldHead]()},
		"list":         {reflect.TypeFor[[]registry.Head]()},
		"promote":      {reflect.TypeFor[movement]()},
		"rollback":     {reflect.TypeFor[movement]()},
	}
}
