package service

import (
	"context"
	"time"

	"mlpromote.dev/mlpromote/registry"
)

// collectionLease is what replicas agree by on who collects.
const collectionLease = "collection"

// firstCollection is when a service collects first, so that one which is restarted every
// day collects too, and one that crashes at once does not do it all the time.
const firstCollection = time.Minute

// Collections is a service that collects at an interval, in one replica of several.
type Collections struct {
	Collector *Collector
	Leases    registry.Leases
	Holder    string        // of the lease: a name of this process that no other has
	Interval  time.Duration // at least a second
	// Tell is told of every collection, also of one that failed.
	Tell func(ctx context.Context, did Collected, took time.Duration, err error)
}

// Run collects until ctx ends. A collection that is at work ends with it, at a place from
// where the next one goes on.
func (c Collections) Run(ctx context.Context) {
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

// turn collects if it is this replica's turn. It stays so for the next time, unless this
// replica is gone by then.
func (c Collections) turn(ctx context.Context) {
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

// keep prolongs the lease of a collection that takes longer than the interval. If it is
// lost, two replicas collect, which does no harm.
func (c Collections) keep(ctx context.Context) {
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

// acquire takes or prolongs the lease, past the next turn.
func (c Collections) acquire(ctx context.Context) (bool, error) {
	return c.Leases.AcquireLease(ctx, collectionLease, c.Holder, 2*c.Interval)
}

// release lets another replica collect at once.
func (c Collections) release(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	_ = c.Leases.ReleaseLease(ctx, collectionLease, c.Holder) // else it ends by itself
}
