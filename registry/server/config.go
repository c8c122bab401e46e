package server

import (
	"context"
	"iter"
	"log/slog"
	"net/http"
	"time"

	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/policy"
	"mlpromote.dev/mlpromote/registry/storage"
	"mlpromote.dev/mlpromote/registry/trust"
)

// Config configures the API. All fields up to Clock are required, but for URL and Checkpoints.
type Config struct {
	// Registry returns releases and heads. It checks the permissions of the context's principal
	// itself, but for operations that are [rest.Row].Whole.
	Registry api.Interface
	// Authorize checks a permission of the principal of ctx, for everything other than Registry.
	// Errors: CodeForbidden. Environment and model are empty for things that belong to no model:
	// node types, runtimes, webhooks, tokens, the whole history.
	Authorize func(ctx context.Context, permission storage.Permission, environment, model string) error
	// History returns the unfiltered history of the catalog, to check its chain.
	History func(ctx context.Context, q history.HistoryQuery) iter.Seq2[history.Event, error]

	// Preview decides about promotions without carrying them out. It checks permissions as Registry does.
	Preview api.Previewer
	// Compare compares limits and interfaces of two releases that the caller may read. Nil: they are not compared.
	Compare policy.CompareReleases
	// URL is where people reach the pages of the service; empty: answers have no links.
	URL string

	// Checkpoints makes signed checkpoints of the history; nil if the service makes none.
	Checkpoints Checkpoints

	NodeTypes storage.NodeTypes
	Runtimes  storage.Runtimes
	// Nodes has what nodes report. It checks permissions as Registry does.
	Nodes storage.NodeReporter
	// ReadNode and ReadRuntime parse documents; name identifies the document in errors. ReadLabels
	// parses the labels of a Kubernetes node. CheckNode applies the rules of node documents to a
	// node that came in another form. Errors: CodeInvalid.
	ReadNode    func(name string, data []byte) (artifact.Node, error)
	CheckNode   func(n artifact.Node) (artifact.Node, error)
	ReadRuntime func(name string, data []byte) (artifact.Runtime, error)
	ReadLabels  func(labels map[string]string) (artifact.Node, error)

	Webhooks        storage.Webhooks
	Deliveries      storage.Deliveries
	CheckWebhookURL func(url string) error // Errors: CodeInvalid
	Idempotency     storage.Idempotency
	Tokens          storage.Tokens
	Clock           storage.CatalogClock // the clock of Webhooks and Deliveries

	// Configuration reports the configuration of the service; nil if it has no configuration
	// files.
	Configuration Configuration

	// Operations says what administrators look after; nil if the service does not.
	Operations func(ctx context.Context) (api.Operations, error)

	// StillAdmitted authenticates the sender of a running request again. An event stream calls it
	// before it sends events. Errors: CodeUnauthenticated if the sender would not be admitted now
	// with the same grants; others if the sender could not be checked. Nil keeps all streams open.
	StillAdmitted func(r *http.Request) error

	Limiter *Limiter      // of requests per caller; nil means no limit
	Poll    time.Duration // interval of queries for events of other replicas; 0 means a second
	// Heartbeat is the interval of keep-alive messages in silent event streams, so that proxies do
	// not close the connection; 0 means 15 seconds.
	Heartbeat time.Duration
	// Stop is closed when the service stops, which ends event streams; nil means never.
	Stop   <-chan struct{}
	Now    storage.Clock // nil means time.Now
	Logger *slog.Logger  // nil discards
}

// Checkpoints makes signed checkpoints of the history and lists those that were made.
type Checkpoints interface {
	// Checkpoint returns a signed checkpoint of all events. Errors: CodeNotFound without events;
	// CodeTrust if the history contradicts an earlier checkpoint.
	Checkpoint(ctx context.Context) ([]byte, error)
	// Proof returns a proof that a checkpoint covers an event. Errors: those of Checkpoint;
	// CodeNotFound if there is no such event.
	Proof(ctx context.Context, seq int64) ([]byte, error)
	// KeptAfter lists up to limit checkpoints of more than size events, by size.
	KeptAfter(ctx context.Context, size int64, limit int) ([]trust.KeptCheckpoint, error)
}

// Configuration reports the configuration of a service and makes a change of it the agreed
// configuration of all replicas.
type Configuration interface {
	Status() history.ConfigurationStatus
	// Adopt makes the configuration in the files of this service the agreed one. want is the
	// expected configuration of the files. Errors: CodeConflict if the files differ from it.
	Adopt(ctx context.Context, want history.Configuration) (history.ConfigurationStatus, error)
}
