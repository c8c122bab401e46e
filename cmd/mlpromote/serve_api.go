package main

import (
	"context"
	"log/slog"
	"path/filepath"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/node"
	"mlpromote.dev/mlpromote/registry/seed"
	"mlpromote.dev/mlpromote/registry/server"
	"mlpromote.dev/mlpromote/registry/sqlite"
)

// apiConfig is what the REST API is made of.
func apiConfig(i *instance, logger *slog.Logger) server.Config {
	return server.Config{
		Registry: i, Authorize: anybody, History: i.local.db.History,
		NodeTypes: i.nodeTypes, Runtimes: seed.Over(i.local.db.Runtimes(), seed.Runtimes()),
		ReadNode: node.Parse, ReadRuntime: node.ParseRuntimeDocument, ReadLabels: node.FromLabels,
		Logger: logger,
	}
}

// anybody may do everything: only who is on this machine can ask.
func anybody(context.Context, registry.Permission, string, string) error { return nil }

// localNodeTypes are those that were put, and those that the operator wrote as files:
// DATA/node-types/NAME.json.
func (a *app) localNodeTypes(db *sqlite.DB) registry.NodeTypes {
	return seed.Over(db.NodeTypes(), seed.Folder[registry.Node]{Dir: filepath.Join(a.data, "node-types"), Read: node.ParseFile})
}
