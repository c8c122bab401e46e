package main

import (
	"reflect"

	"github.com/spf13/cobra"

	"mlpromote.dev/mlpromote/cmd/internal/inspection"
)

// provingCommands returns the commands that prove engines and show what was proven.
func provingCommands(a *app) []*cobra.Command {
	return []*cobra.Command{
		a.verifyCommand(), a.inspectCommand(), a.reportCommand(),
	}
}

// provingDocuments returns the types that each command prints with --output json.
func provingDocuments() map[string][]reflect.Type {
	return map[string][]reflect.Type{
		"inspect":      {reflect.TypeFor[inspection.Result]()},
		"report check": {reflect.TypeFor[checkedReport](), reflect.TypeFor[checkedReports]()}, // the latter of a ref
		"report show":  {reflect.TypeFor[shownReports]()},
		"verify":       {reflect.TypeFor[verifiedRelease]()},
	}
}
