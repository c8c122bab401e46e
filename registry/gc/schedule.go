package gc

import (
	"context"
	"time"

	"mlpromote.dev/mlpromote/registry/storage"
)

// collectionLease is the lease that selects the collecting replica.
const collectionLease = "collection"

// firstCollection is the delay of the first collection. A service that restarts daily must also
// collect, and one that crashes at once must not collect each time.
const firstCollection = time.Minute

// Schedule runs a collector at an interval, in one replica out of several.
type Schedule struct {
	Collector *Collector
	Leases    storage.Leases
	Holder    string        // of the lease; unique to this process
	Interval  time.Duration // at least a second
	// Tell is called after every collection, including failed ones.
	Tell func(ctx context.Context, did Collected, took time.Duration, err error)
}

// Run collects until ctx ends. A running collection stops then, and the next one continues from
// there.
func (c Schedule) Run(ctx context.Context) {
	ticker := time.NewTicker(min(c.Interval, firstCollection))
	defer ticker.Stop()
	defer c.release(ctx)
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			ticker.Reset(c.Interval)
			c.turn(ctx)
		}
	}
}

// turn collects if this replica holds the lease. The replica keeps the lease for the next turn
// while it runs.
func (c Schedule) turn(ctx context.Context) {
	mine, err := c.acquire(ctx)
	if err == nil && !mine || ctx.Err() != nil {
		return
	}
	began := time.Now()
	var did Collected
	if err == nil {
		keeping, stop := context.WithCancel(ctx)
		kept := make(chan struct{})
		go func() {
			defer close(kept)
			c.keep(keeping)
		}()
		did, err = c.Collector.Collect(ctx)
		stop()
		<-kept
	}
	if ctx.Err() == nil {
		c.Tell(ctx, did, time.Since(began), err)
	}
}

// keep extends the lease while a collection takes longer than the interval. If the lease is
// lost, two replicas collect, which is safe.
func (c Schedule) keep(ctx context.Context) {
	ticker := time.NewTicker(c.Interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			_, _ = c.acquire(ctx)
		}
	}
}

// acquire takes or extends the lease past the next turn.
func (c Schedule) acquire(ctx context.Context) (bool, error) {
	return c.Leases.AcquireLease(ctx, collectionLease, c.Holder, 2*c.Interval)
}

// release releases the lease so that another replica can collect at once.
func (c Schedule) release(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	_ = c.Leases.ReleaseLease(ctx, collectionLease, c.Holder) // otherwise it expires
}
