// Package promoting has the verbs that move heads, or keep them where they are: promote, approve, rollback, hold, list.
package promoting

import (
	"reflect"

	"github.com/spf13/cobra"

	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/program"
	"mlpromote.dev/mlpromote/pipeline/approver"
	"mlpromote.dev/mlpromote/registry/history"
)

// Commands returns the commands that move releases from one environment to the next.
func Commands(a *program.App) []*cobra.Command {
	return []*cobra.Command{
		promoteCommand(a), approveCommand(a), rollbackCommand(a), holdCommand(a), listCommand(a),
	}
}

// Documents returns the types that each command prints with --output json.
func Documents() map[string][]reflect.Type {
	return map[string][]reflect.Type{
		"approve":      {reflect.TypeFor[approver.Given]()},
		"hold release": {reflect.TypeFor[heldHead]()},
		"hold set":     {reflect.TypeFor[heldHead]()},
		"list":         {reflect.TypeFor[[]history.Head]()},
		"promote":      {reflect.TypeFor[movement]()},
		"rollback":     {reflect.TypeFor[movement]()},
	}
}
