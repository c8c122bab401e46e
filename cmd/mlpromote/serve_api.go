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
	"mlpromote.dev/mlpromote/registry/webhook"
)

// apiConfig is what the REST API is made of. There is no limit on requests, since only
// this machine can send any.
func apiConfig(ctx context.Context, i *instance, h hooks, logger *slog.Logger) server.Config {
	db := i.local.db
	return server.Config{
		Registry: i, Authorize: anybody, History: db.History,
		NodeTypes: i.nodeTypes, Runtimes: seed.Over(db.Runtimes(), seed.Runtimes()),
		ReadNode: node.Parse, ReadRuntime: node.ParseRuntimeDocument, ReadLabels: node.FromLabels,
		Webhooks: db.Webhooks(), Deliveries: db.Deliveries(), Idempotency: db,
		CheckWebhookURL: func(url string) error { return webhook.CheckURL(url, h.privateUnsafe) },
		Stop:            ctx.Done(), Logger: logger,
	}
}

// anybody may do everything: only who is on this machine can ask.
func anybody(context.Context, registry.Permission, string, string) error { return nil }

// hooks is how webhooks are told.
type hooks struct {
	privateUnsafe bool // also addresses of this machine and network
}

// start tells webhooks of events until what it gives is called, which waits for the end.
func (h hooks) start(ctx context.Context, i *instance, logger *slog.Logger) (stop func(), err error) {
	db := i.local.db
	deliverer, err := webhook.New(webhook.Config{
		Webhooks: db.Webhooks(), Deliveries: db.Deliveries(), Leases: db, History: db.History,
		PrivateUnsafe: h.privateUnsafe, Holder: "the data directory", // which one process has to itself
		Logger: logger,
	})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		deliverer.Run(ctx)
	}()
	return func() { cancel(); <-ended }, nil
}

// localNodeTypes are those that were put, and those that the operator wrote as files:
// DATA/node-types/NAME.json.
func (a *app) localNodeTypes(db *sqlite.DB) registry.NodeTypes {
	return seed.Over(db.NodeTypes(), seed.Folder[registry.Node]{Dir: filepath.Join(a.data, "node-types"), Read: node.ParseFile})
}
