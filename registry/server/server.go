// Package server is the REST API over a registry.Interface: what registry/client
// speaks to, and curl.
package server

import (
	"context"
	"iter"
	"log/slog"
	"net/http"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/internal/rates"
)

// Config is what the API is made of. Every field up to Clock is required.
type Config struct {
	// Registry answers for releases and heads, and knows by itself what the principal of
	// a context may ask: see [Route].ByRegistry.
	Registry registry.Interface
	// Authorize refuses, with CodeForbidden, what the principal of ctx may not do, for all
	// that Registry is not asked about. Environment and model are empty for what belongs
	// to no model: node types, runtimes, webhooks, tokens, the whole history.
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

	Webhooks        registry.Webhooks
	Deliveries      registry.Deliveries
	CheckWebhookURL func(url string) error // Errors: CodeInvalid
	Idempotency     registry.Idempotency
	Tokens          registry.Tokens
	Clock           registry.CatalogClock // of Webhooks and Deliveries

	// Configuration answers for the files of the service; nil: it reads none, and says so.
	Configuration Configuration

	// StillAdmitted refuses a request that was let in, where its sender would not be let in now
	// with the same grants. A stream of events asks before it tells anything. Errors:
	// CodeUnauthenticated, or others when that could not be found out. Nil: whoever was let in stays.
	StillAdmitted func(r *http.Request) error

	Rate Rate          // of each caller; the zero Rate is no limit
	Poll time.Duration // between looks for what other replicas did; 0 means a second
	// Heartbeat is after how much silence a stream of events says that it lives, so that
	// nobody between takes the connection for dead; 0 means 15 seconds.
	Heartbeat time.Duration
	Stop      <-chan struct{} // closed when the service stops, which ends streams of events; nil: it never does
	Now       registry.Clock  // nil means time.Now
	Logger    *slog.Logger    // nil discards
}

// New gives the handler of everything below /api/v1. Errors: CodeInvalid.
func New(c Config) (http.Handler, error) {
	for what, missing := range map[string]bool{
		"registry": c.Registry == nil, "authorize": c.Authorize == nil, "history": c.History == nil,
		"node types": c.NodeTypes == nil, "runtimes": c.Runtimes == nil,
		"webhooks": c.Webhooks == nil || c.Deliveries == nil || c.CheckWebhookURL == nil, "idempotency": c.Idempotency == nil, "tokens": c.Tokens == nil, "clock": c.Clock == nil,
		"readers of documents": c.ReadNode == nil || c.ReadRuntime == nil || c.ReadLabels == nil,
	} {
		if missing {
			return nil, registry.Errorf(registry.CodeInvalid, "server: %s: required and missing", what)
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
	s := newServer(c)
	var err error
	if s.document, err = openAPI(table()); err != nil {
		return nil, err
	}
	return newRouter(s, table())
}

// server is the state of the API. All of it may be lost.
type server struct {
	Config
	engineCache *engineCache
	feed        *feed
	streams     *streams
	limiter     *rates.Limiter
	document    []byte // OpenAPI
}

func newServer(c Config) server {
	return server{
		Config: c, engineCache: new(engineCache), feed: newFeed(c.History, c.Poll), streams: newStreams(), limiter: rates.New(c.Rate),
	}
}
