package webhook

import (
	"context"
	"crypto/rand"
	"iter"
	"log/slog"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"

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

// leaseName and leaseTime belong to the lease that selects one of several replicas. A turn is
// shorter than leaseTime.
const (
	leaseName = "webhooks"
	leaseTime = time.Minute
)

// atOnce is how many webhooks are served at the same time.
const atOnce = 8

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

// Run delivers until ctx ends. It logs errors of the database and continues.
func (d *Deliverer) Run(ctx context.Context) {
	ticker := time.NewTicker(d.Interval)
	defer ticker.Stop()
	defer d.stop(ctx)
	for {
		if err := d.Round(ctx); err != nil && ctx.Err() == nil {
			d.Logger.ErrorContext(ctx, "webhooks", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// stop releases the lease, so that another replica can continue at once.
func (d *Deliverer) stop(ctx context.Context) {
	d.client.CloseIdleConnections()
	if d.until.IsZero() {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), dialTimeout)
	defer cancel()
	if err := d.Leases.ReleaseLease(ctx, leaseName, d.Holder); err != nil {
		d.Logger.ErrorContext(ctx, "webhooks", "error", err)
	}
}

// Round serves every webhook once, if this process has or gets the lease. It is not safe for
// concurrent use.
func (d *Deliverer) Round(ctx context.Context) error {
	if err := d.readClock(ctx); err != nil {
		return err
	}
	mine, err := d.lead(ctx)
	if err != nil || !mine {
		return err
	}
	if d.damage, err = d.readDamage(ctx); err != nil {
		return err
	}
	var group errgroup.Group
	group.SetLimit(atOnce)
	for after := ""; ; {
		page, err := d.Webhooks.List(ctx, after, storage.DefaultPage)
		if err != nil {
			return waitFor(&group, err)
		}
		for _, hook := range page {
			group.Go(func() error { return d.turn(ctx, hook) })
		}
		if len(page) < storage.DefaultPage {
			return group.Wait()
		}
		after = page[len(page)-1].Name
		if mine, err := d.lead(ctx); err != nil || !mine {
			return waitFor(&group, err)
		}
	}
}

// waitFor waits for all turns to end before it returns an error.
func waitFor(group *errgroup.Group, err error) error {
	if failed := group.Wait(); err == nil {
		return failed
	}
	return err
}

// readClock reads the clock of the catalog. The times of the next attempts use it, so that
// another replica can take over.
func (d *Deliverer) readClock(ctx context.Context) error {
	now, err := d.Clock.CatalogTime(ctx)
	if err == nil {
		d.read, d.readAt = now, time.Now()
	}
	return err
}

// now returns the time of the catalog.
func (d *Deliverer) now() time.Time { return d.read.Add(time.Since(d.readAt)) }

// lead takes the lease, or renews it after half of leaseTime.
func (d *Deliverer) lead(ctx context.Context) (bool, error) {
	now := d.now()
	if d.until.Sub(now) > leaseTime/2 {
		return true, nil
	}
	mine, err := d.Leases.AcquireLease(ctx, leaseName, d.Holder, leaseTime)
	d.until = time.Time{}
	if mine && err == nil {
		d.until = now.Add(leaseTime)
	}
	return mine, err
}
