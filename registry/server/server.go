// Package server is the REST API over a registry.Interface: what registry/client
// speaks to, and curl.
package server

import (
	"context"
	"log/slog"
	"net/http"

	"mlpromote.dev/mlpromote/registry"
)

// Config is what the API is made of. Registry and Authorize are required.
type Config struct {
	// Registry answers for releases and heads, and knows by itself what the principal of
	// a context may ask: see [Route].ByRegistry.
	Registry registry.Interface
	// Authorize refuses, with CodePolicy, what the principal of ctx may not do, for all
	// that Registry is not asked about. Environment and model are empty for what belongs
	// to no model: node types, runtimes, webhooks, the whole history.
	Authorize func(ctx context.Context, permission registry.Permission, environment, model string) error
	// NodeType gives the node of a named type. Nil knows none.
	NodeType func(ctx context.Context, name string) (registry.Node, error)
	Logger   *slog.Logger // nil discards
}

// New gives the handler of everything below /api/v1. Errors: CodeInvalid.
func New(c Config) (http.Handler, error) {
	if c.Registry == nil || c.Authorize == nil {
		return nil, registry.Errorf(registry.CodeInvalid, "server: registry and authorize are both required")
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.NodeType == nil {
		c.NodeType = func(_ context.Context, name string) (registry.Node, error) {
			return registry.Node{}, registry.Errorf(registry.CodeNotFound, "no node type %q", name)
		}
	}
	return newRouter(server{c}, table())
}

type server struct{ Config }
