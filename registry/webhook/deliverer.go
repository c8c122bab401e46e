package webhook

import (
	"context"
	"crypto/rand"
	"iter"
	"log/slog"
	"net/http"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/storage"
)

// Config has the dependencies and options of a Deliverer. The first five are required.
type Config struct {
	Webhooks   storage.Webhooks
	Deliveries storage.Deliveries
	Leases     storage.Leases
	Clock      storage.CatalogClock // the clock of Leases
	History    func(ctx context.Context, q history.HistoryQuery) iter.Seq2[history.Event, error]

	// Damages lists damaged content, and webhooks are notified about it too. It may be nil.
	Damages storage.Damages

	// URL is where people reach the pages of the service, to which deliveries link. Empty: they have no links.
	URL string
	// PrivateUnsafe also allows addresses of this machine and of private networks, and http. A
	// caller who may register a webhook can then reach services that only this machine should
	// reach.
	PrivateUnsafe bool
	// Holder names this process in the lease. It must differ from every other replica's.
	// If it is the same after a crash, the process continues without waiting for its old lease.
	// Empty means a random name.
	Holder   string
	Interval time.Duration // between checks for new events; 0 means a second
	Logger   *slog.Logger  // nil discards
}

// Deliverer delivers events to webhooks. Of several with one database, only the holder of the
// lease delivers.
type Deliverer struct {
	Config
	client *http.Client
	until  time.Time        // of the lease; zero: another has it
	read   time.Time        // the clock of the catalog
	readAt time.Time        // the local clock at the same moment
	damage []storage.Damage // known when the round began
}

// New checks a configuration. Errors: CodeInvalid.
func New(c Config) (*Deliverer, error) {
	if c.Webhooks == nil || c.Deliveries == nil || c.Leases == nil || c.Clock == nil || c.History == nil {
		return nil, registry.Errorf(registry.CodeInvalid, "webhook: webhooks, deliveries, leases, clock and history are all required")
	}
	if c.Interval <= 0 {
		c.Interval = time.Second
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Holder == "" {
		c.Holder = rand.Text()
	}
	return &Deliverer{Config: c, client: newClient(c.PrivateUnsafe)}, nil
}

// now returns the time of the catalog.
func (d *Deliverer) now() time.Time { return d.read.Add(time.Since(d.readAt)) }
