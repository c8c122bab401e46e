package main

import (
	"reflect"

	"github.com/spf13/cobra"

	"mlpromote.dev/mlpromote/pipeline/approver"
)

// restrictingCommands returns the commands that forbid the use of releases and delete evidence.
func restrictingCommands(a *app) []*cobra.Command {
	return []*cobra.Command{
		a.quarantineCommand(), a.evidenceCommand(),
	}
}

// restrictingDocuments returns the types that each command prints with --output json.
func restrictingDocuments() map[string][]reflect.Type {
	return map[string][]reflect.Type{
		"evidence delete":    {reflect.TypeFor[deletedEvidence]()},
		"quarantine":         {reflect.TypeFor[[]approver.Attached](), reflect.TypeFor[[]approver.Restricted]()}, // the latter of restrictions
		"quarantine export":  {reflect.TypeFor[exportedRestrictions]()},
		"quarantine lift":    {reflect.TypeFor[[]approver.Attached](), reflect.TypeFor[[]approver.Restricted]()},
		"quarantine list":    {reflect.TypeFor[[]approver.Restricted]()},
		"quarantine renew":   {reflect.TypeFor[[]approver.Restricted]()},
		"quarantine restore": {reflect.TypeFor[[]approver.Restricted]()},
	}
}
