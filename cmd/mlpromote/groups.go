package main

import (
	"maps"
	"path"
	"reflect"

	"github.com/spf13/cobra"

	"mlpromote.dev/mlpromote/cmd/internal/command"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/building"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/diagnosis"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/drafting"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/integration"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/nodes"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/operating"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/policies"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/program"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/promoting"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/proving"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/restricting"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/upkeep"
)

// group is a package of verbs. What several groups need lies below them.
type group struct {
	commands  func(*program.App) []*cobra.Command
	documents func() map[string][]reflect.Type // what they print with --output json
}

// groups lists all verbs, but for version and those that write reference pages.
func groups() []group {
	return []group{
		{drafting.Commands, drafting.Documents},
		{building.Commands, building.Documents},
		{proving.Commands, proving.Documents},
		{diagnosis.Commands, diagnosis.Documents},
		{promoting.Commands, promoting.Documents},
		{restricting.Commands, restricting.Documents},
		{policies.Commands, policies.Documents},
		{nodes.Commands, nodes.Documents},
		{integration.Commands, integration.Documents},
		{operating.Commands, operating.Documents},
		{upkeep.Commands, upkeep.Documents},
	}
}

// documents are what each verb prints with --output json. From them docs/reference has its
// schema; tests hold what verbs print against that.
func documents() map[string][]reflect.Type {
	all := map[string][]reflect.Type{"version": {reflect.TypeFor[command.About]()}}
	for _, g := range groups() {
		maps.Copy(all, g.documents())
	}
	return all
}

// unprefixed returns the packages of verbs whose types have names without a package in the schema of what verbs print.
// A verb can move between these packages without a change of the schema.
func unprefixed() []string {
	var paths []string
	for _, name := range []string{"building", "drafting", "nodes", "operating", "policies", "promoting", "proving", "restricting"} {
		paths = append(paths, path.Join(path.Dir(reflect.TypeFor[program.App]().PkgPath()), name))
	}
	return paths
}
