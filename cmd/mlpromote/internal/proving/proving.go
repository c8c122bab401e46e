// Package proving has the verbs that prove engines and show the proofs: verify, inspect, report.
package proving

import (
	"reflect"

	"github.com/spf13/cobra"

	"mlpromote.dev/mlpromote/cmd/internal/inspection"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/program"
)

// Commands returns the commands that prove engines and show the proofs.
func Commands(a *program.App) []*cobra.Command {
	return []*cobra.Command{
		verifyCommand(a), inspectCommand(a), reportCommand(a),
	}
}

// Documents returns the types that each command prints with --output json.
func Documents() map[string][]reflect.Type {
	return map[string][]reflect.Type{
		"inspect":      {reflect.TypeFor[inspection.Result]()},
		"report check": {reflect.TypeFor[checkedReport](), reflect.TypeFor[checkedReports]()}, // the latter of a ref
		"report show":  {reflect.TypeFor[shownReports]()},
		"verify":       {reflect.TypeFor[verifiedRelease]()},
	}
}
