package service

import (
	"context"
	"crypto/rand"
	"errors"
	"time"

	"mlpromote.dev/mlpromote/registry"
)

const (
	// removalBatch is how many digests are in one removal. Most batches take a small part of
	// [registry.RemovalTime]; what is left of a longer one is in the next.
	removalBatch = 100
	// endTimeout bounds the end of a removal when the collector is asked to stop.
	endTimeout = 5 * time.Second
)

// turn is the turn of a collector, in the epoch in which the catalog owned the content.
type turn struct {
	session registry.CollectionSession
	epoch   int64
}

// lasts makes sure that the turn is not over, and that the content has not changed hands.
func (c *Collector) lasts(ctx context.Context, turn turn) error {
	if err := turn.session.Held(ctx); err != nil {
		return err
	}
	epoch, err := c.Owner.OwnsContent(ctx)
	if err == nil && epoch != turn.epoch {
		err = registry.Errorf(registry.CodeUnavailable, "the content changed hands during the collection: what is left of it was not done")
	}
	return err
}

// removeDue deletes the bytes that were condemned before a time, some at a time.
func (c *Collector) removeDue(ctx context.Context, turn turn, before time.Time, did *Collected) error {
	abandoned, err := c.abandoned(ctx)
	if err != nil {
		return err
	}
	var batch []registry.Digest
	flush := func() error {
		digests := batch
		batch = nil
		return c.removeBatch(ctx, turn, registry.RemovalRequest{Digests: digests, Before: before, Abandoned: abandoned}, did)
	}
	for d, err := range c.Garbage.Due(ctx, before) {
		if err != nil {
			return err
		}
		if batch = append(batch, d); len(batch) < removalBatch {
			continue
		}
		if err := flush(); err != nil {
			return err
		}
	}
	return flush()
}

// abandoned gives a time before which no permit can be in use whose removal had ended by
// then. Where another collector stands still with one, that is never.
func (c *Collector) abandoned(ctx context.Context) (time.Time, error) {
	now, err := c.Clock.CatalogTime(ctx)
	if err != nil {
		return time.Time{}, err
	}
	err = c.Remover.Await(ctx)
	if registry.HasCode(err, registry.CodeUnavailable) && ctx.Err() == nil {
		return time.Time{}, nil
	}
	return now, err
}

// removeBatch deletes what of a batch nobody holds, in removals that each do as much as they
// have time for.
func (c *Collector) removeBatch(ctx context.Context, turn turn, r registry.RemovalRequest, did *Collected) error {
	sizes, err := c.sizes(ctx, r.Digests)
	if err != nil {
		return err
	}
	r.Lasting = registry.RemovalTime
	for len(r.Digests) > 0 {
		r.ID = rand.Text()
		begun, err := c.Garbage.BeginRemoval(ctx, r)
		if err != nil || len(begun) == 0 {
			return err
		}
		removed, kept, err := c.remove(ctx, turn, r.ID, begun)
		for _, d := range removed {
			did.Blobs++
			did.Bytes += sizes[d]
		}
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
		err = errors.Join(err, c.Garbage.EndRemoval(ending, r.ID, removed, kept))
		cancel()
		if err != nil || len(removed) == 0 {
			return err
		}
		r.Digests = kept
	}
	return nil
}

// remove deletes the digests of a removal one after the other while it lasts. It gives those
// that it deleted and those that it did not try.
func (c *Collector) remove(ctx context.Context, turn turn, id string, digests []registry.Digest) (removed, kept []registry.Digest, err error) {
	for len(digests) > 0 && err == nil {
		var done int
		done, err = c.removeSome(ctx, turn, id, digests)
		removed, digests = append(removed, digests[:done]...), digests[done:]
		if done == 0 {
			break
		}
	}
	if tried := (deletionError{}); errors.As(err, &tried) {
		digests = digests[1:]
	}
	return removed, digests, err
}

// deletionError is the failure of a deletion, which may have been carried out or not.
type deletionError struct{ error }

func (e deletionError) Unwrap() error { return e.error }

// removeSome deletes the first of the digests by one permit, and gives their number. That
// it may is asked after there is the permit: from then on the permit ends before the removal
// does, even if this process stands still now.
func (c *Collector) removeSome(ctx context.Context, turn turn, id string, digests []registry.Digest) (done int, err error) {
	until := time.Now().Add(registry.PermitTime)
	permit, err := c.Remover.Permit(ctx)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, permit.Close()) }()
	if err := c.lasts(ctx, turn); err != nil {
		return 0, err
	}
	lasts, err := c.Garbage.ConfirmRemoval(ctx, id, registry.PermitTime+registry.RemovalMargin)
	if err != nil || !lasts {
		return 0, err
	}
	for _, d := range digests {
		if done > 0 && time.Now().After(until) {
			break
		}
		if err := permit.Delete(ctx, d); err != nil {
			return done, deletionError{err}
		}
		done++
	}
	return done, nil
}

// sizes gives the sizes of blobs.
func (c *Collector) sizes(ctx context.Context, digests []registry.Digest) (map[registry.Digest]int64, error) {
	sizes := make(map[registry.Digest]int64, len(digests))
	for _, d := range digests {
		size, err := c.sizeOf(ctx, d)
		if err != nil {
			return nil, err
		}
		sizes[d] = size
	}
	return sizes, nil
}
