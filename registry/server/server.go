// Package server serves the REST API of a api.Interface, for registry/client and for other
// HTTP clients.
package server

import (
	"log/slog"
	"net/http"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/rest"
	"mlpromote.dev/mlpromote/registry/server/openapi"
)

// New returns the handler of everything below /api/v1. Errors: CodeInvalid.
func New(c Config) (http.Handler, error) {
	for what, missing := range map[string]bool{
		"registry": c.Registry == nil, "preview": c.Preview == nil, "authorize": c.Authorize == nil, "history": c.History == nil,
		"node types": c.NodeTypes == nil, "runtimes": c.Runtimes == nil, "nodes": c.Nodes == nil,
		"webhooks":    c.Webhooks == nil || c.Deliveries == nil || c.CheckWebhookURL == nil,
		"idempotency": c.Idempotency == nil, "tokens": c.Tokens == nil, "clock": c.Clock == nil,
		"readers of documents": c.ReadNode == nil || c.CheckNode == nil || c.ReadRuntime == nil || c.ReadLabels == nil,
	} {
		if missing {
			return nil, registry.Errorf(registry.CodeInvalid, "server: %s is required, but missing", what)
		}
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.StillAdmitted == nil {
		c.StillAdmitted = func(*http.Request) error { return nil }
	}
	if c.Poll <= 0 {
		c.Poll = time.Second
	}
	if c.Heartbeat <= 0 {
		c.Heartbeat = 15 * time.Second
	}
	for _, o := range rest.Table() {
		if err := o.Validate(); err != nil {
			return nil, err
		}
	}
	s := newServer(c)
	var err error
	if s.document, err = openapi.Document(rest.Table()); err != nil {
		return nil, err
	}
	return newRouter(s, table())
}
