// Package server is the REST API over a registry.Interface: what registry/client
// speaks to, and curl.
package server

import (
	"context"
	"iter"
	"log/slog"
	"net/http"

	"mlpromote.dev/mlpromote/registry"
)

// Config is what the API is made of. Every field but Logger is required.
type Config struct {
	// Registry answers for releases and heads, and knows by itself what the principal of
	// a context may ask: see [Route].ByRegistry.
	Registry registry.Interface
	// Authorize refuses, with CodePolicy, what the principal of ctx may not do, for all
	// that Registry is not asked about. Environment and model are empty for what belongs
	// to no model: node types, runtimes, webhooks, the whole history.
	Authorize func(ctx context.Context, permission registry.Permission, environment, model string) error
	// History is that of the catalog, which hides nothing from anybody: to check its chain.
	History func(ctx context.Context, q registry.HistoryQuery) iter.Seq2[registry.Event, error]

	NodeTypes registry.NodeTypes
	Runtimes  registry.Runtimes
	// ReadNode and ReadRuntime read documents; name stands for them in errors. ReadLabels
	// reads the labels of a Kubernetes node. Errors: CodeInvalid.
	ReadNode    func(name string, data []byte) (registry.Node, error)
	ReadRuntime func(name string, data []byte) (registry.Runtime, error)
	ReadLabels  func(labels map[string]string) (registry.Node, error)

	Logger *slog.Logger // nil discards
}

// New gives the handler of everything below /api/v1. Errors: CodeInvalid.
func New(c Config) (http.Handler, error) {
	for what, missing := range map[string]bool{
		"registry": c.Registry == nil, "authorize": c.Authorize == nil, "history": c.History == nil,
		"node types": c.NodeTypes == nil, "runtimes": c.Runtimes == nil,
		"readers of documents": c.ReadNode == nil || c.ReadRuntime == nil || c.ReadLabels == nil,
	} {
		if missing {
			return nil, registry.Errorf(registry.CodeInvalid, "server: %s: required and missing", what)
		}
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return newRouter(server{Config: c, engineCache: new(engineCache)}, table())
}

type server struct {
	Config
	engineCache *engineCache
}
