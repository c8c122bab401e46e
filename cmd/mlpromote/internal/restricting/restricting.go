// Package restricting has the verbs that forbid the use of releases and engines, and that delete evidence: quarantine,
// evidence.
package restricting

import (
	"reflect"

	"github.com/spf13/cobra"

	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/program"
	"mlpromote.dev/mlpromote/pipeline/approver"
)

// Commands returns the commands that forbid the use of releases and delete evidence.
func Commands(a *program.App) []*cobra.Command {
	return []*cobra.Command{
		quarantineCommand(a), evidenceCommand(a),
	}
}

// Documents returns the types that each command prints with --output json.
func Documents() map[string][]reflect.Type {
	return map[string][]reflect.Type{
		"evidence delete":    {reflect.TypeFor[deletedEvidence]()},
		"quarantine":         {reflect.TypeFor[[]approver.Attached](), reflect.TypeFor[[]approver.Restricted]()}, // the latter of restrictions
		"quarantine export":  {reflect.TypeFor[exportedRestrictions]()},
		"quarantine lift":    {reflect.TypeFor[[]approver.Attached](), reflect.TypeFor[[]approver.Restricted]()},
		"quarantine list":    {reflect.TypeFor[[]listed]()},
		"quarantine renew":   {reflect.TypeFor[[]approver.Restricted]()},
		"quarantine restore": {reflect.TypeFor[[]approver.Restricted]()},
	}
}
