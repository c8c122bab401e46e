// Package operating has the verbs that run a service and show its history: serve, health, token, history, reindex.
package operating

import (
	"maps"
	"reflect"

	"github.com/spf13/cobra"

	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/auditing"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/program"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/serving"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/storage"
)

// Commands returns the commands that run a service and look after it.
func Commands(a *program.App) []*cobra.Command {
	return []*cobra.Command{
		serveCommand(a), healthCommand(a), tokenCommand(a), historyCommand(a), reindexCommand(a),
	}
}

// Documents returns the types that each command prints with --output json.
func Documents() map[string][]reflect.Type {
	all := map[string][]reflect.Type{
		"health":         {reflect.TypeFor[ready]()},
		"history accept": {reflect.TypeFor[acceptedHistory]()},
		"history list":   {reflect.TypeFor[[]history.Event](), reflect.TypeFor[history.Event]()}, // the latter with --follow, one on a line
		"reindex":        {reflect.TypeFor[reindexed]()},
		"serve":          {reflect.TypeFor[servedAt](), reflect.TypeFor[[]serving.Effective]()}, // the latter with --print-config
		"token create":   {reflect.TypeFor[newToken]()},
		"token list":     {reflect.TypeFor[[]storage.Token]()},
		"token revoke":   {reflect.TypeFor[revokedToken]()},
	}
	maps.Copy(all, auditing.Documents())
	return all
}
