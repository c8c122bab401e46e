// Package policies has the verbs for what environments ask for and whom they trust: environments, configuration, policy,
// trust, key.
package policies

import (
	"reflect"

	"github.com/spf13/cobra"

	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/auditing"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/program"
	"mlpromote.dev/mlpromote/registry/config"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/service/resolution"
)

// Commands returns the commands that say what environments ask for and whom they trust.
func Commands(a *program.App) []*cobra.Command {
	return []*cobra.Command{
		environmentsCommand(a), configurationCommand(a), policyCommand(a), trustCommand(a), keyCommand(a),
	}
}

// Documents returns the types that each command prints with --output json.
func Documents() map[string][]reflect.Type {
	return map[string][]reflect.Type{
		"configuration adopt":  {reflect.TypeFor[history.Configuration]()},
		"configuration status": {reflect.TypeFor[history.ConfigurationStatus]()},
		"environments check":   {reflect.TypeFor[checkedEnvironments]()},
		"key generate":         {reflect.TypeFor[generatedKey]()},
		"key identity":         {reflect.TypeFor[usedIdentity]()},
		"key timestamps":       {reflect.TypeFor[usedTimestamps]()},
		"key use":              {reflect.TypeFor[generatedKey]()},
		"policy replay":        {reflect.TypeFor[[]resolution.Replayed]()},
		"trust add":            {reflect.TypeFor[changedTrust]()},
		"trust export":         {reflect.TypeFor[exportedSummary]()},
		"trust list":           {reflect.TypeFor[listedTrust]()},
		"trust retire":         {reflect.TypeFor[changedTrust]()},
		"trust revoke":         {reflect.TypeFor[changedTrust]()},
	}
}

// trustCommand adds to the verb of nodes what changes environments.yaml.
func trustCommand(a *program.App) *cobra.Command {
	check := a.NodeVerbs().Trust()
	check.Long += `

The verbs below change who is trusted, in environments.yaml, and publish that. A folder with the
name of one of them is ./NAME.`
	bundles := auditing.Verbs{App: a}
	check.AddCommand(bundles.TrustBundle(), bundles.TrustPublish(func() config.Files { return a.At().Files() }))
	check.AddCommand(trustAddCommand(a), trustListCommand(a), trustRetireCommand(a), trustRevokeCommand(a), trustExportCommand(a))
	return check
}
