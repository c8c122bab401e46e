package scrub

import (
	"context"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/storage"
)

const (
	// leaseName is the lease of the replica that scrubs. It expires after leaseTime without
	// renewal.
	leaseName = "scrub"
	leaseTime = time.Minute
	// maxSuspects bounds the content that waits to be checked before its turn.
	maxSuspects = 64
)

// Background runs a Scrubber in a service, in one replica out of several.
type Background struct {
	Scrubber *Scrubber
	Leases   storage.Leases
	Holder   string        // unique name of this process in the lease
	Restart  bool          // Pass begins at the beginning
	Interval time.Duration // from the end of one pass to the beginning of the next; 0: no passes
	Tick     time.Duration // between checks for work; 0 means ten seconds, or Interval if that is less
	// Ended is called after each pass, also a failed one. Status is called at each tick with
	// the number of known damages and the end of the last pass in any replica. Before the
	// first pass has ended, it gets its beginning.
	Ended  func(ctx context.Context, did Result, took time.Duration, err error)
	Status func(ctx context.Context, damaged int, since time.Time)

	suspects chan registry.Digest
}

// NewBackground returns a copy of b that is ready to run.
func NewBackground(b Background) *Background {
	b.suspects = make(chan registry.Digest, maxSuspects)
	if b.Tick <= 0 {
		b.Tick = 10 * time.Second
		if b.Interval > 0 {
			b.Tick = min(b.Tick, b.Interval)
		}
	}
	return &b
}

// Suspect has content checked soon in this replica, because a client was sent wrong bytes. It
// never blocks. If too much content waits, the next pass finds the damage.
func (b *Background) Suspect(d registry.Digest) {
	select {
	case b.suspects <- d:
	default:
	}
}

// Run scrubs until ctx ends. An interrupted pass continues later from its position, in any
// replica.
func (b *Background) Run(ctx context.Context) {
	ticker := time.NewTicker(b.Tick)
	defer ticker.Stop()
	passes := make(chan struct{})
	go func() { // concurrently: suspects must not wait for a pass that takes days
		defer close(passes)
		if b.Interval > 0 {
			b.passes(ctx)
		}
	}()
	defer func() { <-passes }()
	b.status(ctx)
	for {
		select {
		case <-ctx.Done():
			return
		case d := <-b.suspects:
			b.look(ctx, d)
		case <-ticker.C:
			b.status(ctx)
		}
	}
}

// look checks one digest before its turn, unless it is already known to be damaged.
func (b *Background) look(ctx context.Context, d registry.Digest) {
	if _, err := b.Scrubber.Damages.Get(ctx, string(d)); err == nil {
		return
	}
	if err := b.Scrubber.checkOne(ctx, d, new(Result)); err != nil && ctx.Err() == nil {
		b.Ended(ctx, Result{}, 0, err)
	}
	b.status(ctx)
}

func (b *Background) status(ctx context.Context) {
	if state, err := b.Scrubber.State(ctx); err == nil {
		if n, err := b.Scrubber.known(ctx); err == nil {
			since := state.Finished
			if since.IsZero() {
				since = state.Started
			}
			b.Status(ctx, n, since)
		}
	}
}

// known counts the known damage.
func (s *Scrubber) known(ctx context.Context) (int, error) {
	n := 0
	for after := ""; ; {
		page, err := s.Damages.List(ctx, after, pageSize)
		if n += len(page); err != nil || len(page) < pageSize {
			return n, err
		}
		after = page[len(page)-1].Name
	}
}

// passes makes passes until ctx ends, whenever one is due and this replica has the lease.
func (b *Background) passes(ctx context.Context) {
	ticker := time.NewTicker(b.Tick)
	defer ticker.Stop()
	defer b.Release(ctx)
	var pause time.Time // after a failure
	for {
		if time.Now().After(pause) && b.isDue(ctx) && !b.turn(ctx) {
			pause = time.Now().Add(leaseTime)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// isDue reports whether a pass is in progress or should begin. If the last pass ended in the
// future, the clock was set back, and a pass is due.
func (b *Background) isDue(ctx context.Context) bool {
	state, err := b.Scrubber.State(ctx)
	if err != nil {
		return false
	}
	if !state.Started.IsZero() || state.Finished.IsZero() {
		return true
	}
	now, err := b.Scrubber.Clock.CatalogTime(ctx)
	return err == nil && (now.Sub(state.Finished) >= b.Interval || now.Before(state.Finished))
}

// turn makes a pass if this replica has the lease, and reports whether nothing failed.
func (b *Background) turn(ctx context.Context) bool {
	began := time.Now()
	did, mine, err := b.Pass(ctx)
	if !mine || ctx.Err() != nil {
		return err == nil
	}
	b.Ended(ctx, did, time.Since(began), err)
	return err == nil
}

// Pass makes one pass, as [Scrubber.Pass]. mine is false if another replica has the lease.
// Pass stops if it loses the lease.
func (b *Background) Pass(ctx context.Context) (did Result, mine bool, err error) {
	if mine, err = b.acquire(ctx); err != nil || !mine {
		return Result{}, false, err
	}
	ctx, lost := context.WithCancelCause(ctx)
	defer lost(nil)
	kept := make(chan struct{})
	keeping, stop := context.WithCancel(ctx)
	go func() {
		defer close(kept)
		b.keep(keeping, lost)
	}()
	if b.Restart {
		err = b.Scrubber.Restart(ctx)
	}
	if err == nil {
		did, err = b.Scrubber.Pass(ctx)
	}
	stop()
	<-kept
	if cause := context.Cause(ctx); registry.HasCode(cause, registry.CodeConflict) {
		err = cause
	}
	return did, true, err
}

// keep renews the lease. It calls lost if another replica has taken it.
func (b *Background) keep(ctx context.Context, lost context.CancelCauseFunc) {
	ticker := time.NewTicker(leaseTime / 4)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			if mine, err := b.acquire(ctx); err == nil && !mine {
				lost(registry.Errorf(registry.CodeConflict, "another process took over the pass: this one was silent for too long"))
				return
			}
		}
	}
}

func (b *Background) acquire(ctx context.Context) (bool, error) {
	return b.Leases.AcquireLease(ctx, leaseName, b.Holder, leaseTime)
}

// Release gives up the lease, so that another process can continue at once.
func (b *Background) Release(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	_ = b.Leases.ReleaseLease(ctx, leaseName, b.Holder) // if this fails, the lease expires
}
