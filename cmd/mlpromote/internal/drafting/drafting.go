// Package drafting has the verbs that write a spec, and prepare cases and limits for it: init, cases, schema, limits.
package drafting

import (
	"encoding/json"
	"reflect"

	"github.com/spf13/cobra"

	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/program"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/recording"
)

// Commands returns the commands that write a spec and prepare cases and limits for it.
func Commands(a *program.App) []*cobra.Command {
	return []*cobra.Command{
		initCommand(a), casesCommand(a), schemaCommand(a), limitsCommand(a),
	}
}

// Documents returns the types that each command prints with --output json.
func Documents() map[string][]reflect.Type {
	return map[string][]reflect.Type{
		"cases record":   {reflect.TypeFor[recording.Captured](), reflect.TypeFor[recording.Taken]()}, // the latter with --from
		"cases split":    {reflect.TypeFor[recording.Divided]()},
		"schema":         {reflect.TypeFor[json.RawMessage]()}, // of the spec: the same with text
		"init":           {reflect.TypeFor[initAnswer]()},
		"limits suggest": {reflect.TypeFor[suggestedLimits]()},
	}
}
