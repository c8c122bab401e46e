package main

import (
	"encoding/json"
	"reflect"

	"github.com/spf13/cobra"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/service"
)

// policiesCommands returns the commands that say what environments ask for and whom they trust.
func policiesCommands(a *app) []*cobra.Command {
	return []*cobra.Command{
		a.environmentsCommand(), a.configurationCommand(), a.policyCommand(), a.trustCommand(), a.keyCommand(),
	}
}

// policiesDocuments returns the types that each command prints with --output json.
func policiesDocuments() map[string][]reflect.Type {
	return map[string][]reflect.Type{
		"configuration adopt":  {reflect.TypeFor[registry.Configuration]()},
		"configuration status": {reflect.TypeFor[registry.ConfigurationStatus]()},
		"environments check":   {reflect.TypeFor[checkedEnvironments]()},
		"environments schema":  {reflect.TypeFor[json.RawMessage]()}, // of environments.yaml: the same with text
		"key generate":         {reflect.TypeFor[generatedKey]()},
		"key identity":         {reflect.TypeFor[usedIdentity]()},
		"key timestamps":       {reflect.TypeFor[usedTimestamps]()},
		"key use":              {reflect.TypeFor[generatedKey]()},
		"policy replay":        {reflect.TypeFor[[]service.Replayed]()},
		"trust add":            {reflect.TypeFor[changedTrust]()},
		"trust export":         {reflect.TypeFor[exportedSummary]()},
		"trust list":           {reflect.TypeFor[listedTrust]()},
		"trust retire":         {reflect.TypeFor[changedTrust]()},
		"trust revoke":         {reflect.TypeFor[changedTrust]()},
	}
}
