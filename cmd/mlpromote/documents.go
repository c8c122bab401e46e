package main

import (
	"encoding/json"
	"maps"
	"reflect"

	"mlpromote.dev/mlpromote/cmd/internal/command"
	"mlpromote.dev/mlpromote/cmd/internal/inspection"
	"mlpromote.dev/mlpromote/cmd/internal/nodeverbs"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/auditing"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/diagnosis"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/export"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/integration"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/recording"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/serving"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/toolchains"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/upkeep"
	"mlpromote.dev/mlpromote/pipeline/approver"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/service"
)

// documents are what each verb prints with --output json. From them docs/reference has its
// schema; tests hold what verbs print against that.
func documents() map[string][]reflect.Type {
	all := map[string][]reflect.Type{
		"approve":              of[approver.Given](),
		"assemble":             of[assembledRelease](),
		"build":                of[builtRelease](),
		"cache list":           of[[]toolchains.Kept](),
		"cache prune":          of[prunedSteps](),
		"cases record":         {reflect.TypeFor[recording.Captured](), reflect.TypeFor[recording.Taken]()}, // the latter with --from
		"cases split":          of[recording.Divided](),
		"configuration adopt":  of[registry.Configuration](),
		"configuration status": of[registry.ConfigurationStatus](),
		"environments check":   of[checkedEnvironments](),
		"environments schema":  of[json.RawMessage](), // of environments.yaml: the same with text
		"evidence delete":      of[deletedEvidence](),
		"health":               of[ready](),
		"history accept":       of[acceptedHistory](),
		"history list":         {reflect.TypeFor[[]registry.Event](), reflect.TypeFor[registry.Event]()}, // the latter with --follow, one on a line
		"hold release":         of[heldHead](),
		"hold set":             of[heldHead](),
		"init":                 of[initAnswer](),
		"inspect":              of[inspection.Result](),
		"key generate":         of[generatedKey](),
		"key identity":         of[usedIdentity](),
		"key timestamps":       of[usedTimestamps](),
		"key use":              of[generatedKey](),
		"list":                 of[[]registry.Head](),
		"node describe":        of[registry.Node](),
		"node list":            of[[]registry.NodeReport](),
		"node report":          of[registry.NodeReport](),
		"node-type delete":     of[deletedName](),
		"node-type get":        of[registry.Node](),
		"node-type list":       of[[]registry.Named[registry.Node]](),
		"node-type put":        of[registry.Named[registry.Node]](),
		"plan":                 of[planned](),
		"policy replay":        of[[]service.Replayed](),
		"promote":              of[movement](),
		"quarantine":           {reflect.TypeFor[[]approver.Attached](), reflect.TypeFor[[]approver.Restricted]()}, // the latter of restrictions
		"quarantine export":    of[exportedRestrictions](),
		"quarantine lift":      {reflect.TypeFor[[]approver.Attached](), reflect.TypeFor[[]approver.Restricted]()},
		"quarantine list":      of[[]approver.Restricted](),
		"quarantine renew":     of[[]approver.Restricted](),
		"quarantine restore":   of[[]approver.Restricted](),
		"reindex":              of[reindexed](),
		"report check":         {reflect.TypeFor[checkedReport](), reflect.TypeFor[checkedReports]()}, // the latter of a ref
		"report show":          of[shownReports](),
		"rollback":             of[movement](),
		"schema":               of[json.RawMessage](),                                                 // of the spec: the same with text
		"serve":                {reflect.TypeFor[servedAt](), reflect.TypeFor[[]serving.Effective]()}, // the latter with --print-config
		"token create":         of[newToken](),
		"token list":           of[[]registry.Token](),
		"token revoke":         of[revokedToken](),
		"toolchain install":    of[toolchains.Found](),
		"toolchain list":       of[[]toolchains.Status](),
		"toolchain remove":     of[[]toolchains.Found](),
		"limits suggest":       of[suggestedLimits](),
		"tune":                 of[tuned](),
		"verify":               of[verifiedRelease](),
		"version":              of[command.About](),
	}
	maps.Copy(all, trustDocuments())
	maps.Copy(all, nodeverbs.Documents())
	maps.Copy(all, auditing.Documents())
	maps.Copy(all, upkeep.Documents())
	maps.Copy(all, integration.Documents())
	maps.Copy(all, export.Documents())
	maps.Copy(all, diagnosis.Documents())
	return all
}

// trustDocuments are those of the verbs that change who is trusted.
func trustDocuments() map[string][]reflect.Type {
	return map[string][]reflect.Type{
		"trust add":    of[changedTrust](),
		"trust export": of[exportedSummary](),
		"trust list":   of[listedTrust](),
		"trust retire": of[changedTrust](),
		"trust revoke": of[changedTrust](),
	}
}

func of[T any]() []reflect.Type { return []reflect.Type{reflect.TypeFor[T]()} }
