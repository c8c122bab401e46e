package gc

import (
	"context"
	"crypto/rand"
	"errors"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/storage"
)

const (
	// removalBatch is the number of digests in one removal. Most batches take a small part of
	// [storage.RemovalTime]. The rest of a slower one moves to the next.
	removalBatch = 100
	// endTimeout limits the time to end a removal after the collector was asked to stop.
	endTimeout = 5 * time.Second
)

// turn is a held collection lock, and the epoch in which the catalog owned the content.
type turn struct {
	session storage.CollectionSession
	epoch   int64
}

// lasts checks that the lock is still held and that the content has the same owner.
func (c *Collector) lasts(ctx context.Context, turn turn) error {
	if err := turn.session.Held(ctx); err != nil {
		return err
	}
	epoch, err := c.Owner.OwnsContent(ctx)
	if err == nil && epoch != turn.epoch {
		err = registry.Errorf(registry.CodeUnavailable,
			"the content got another owner during the collection, so the collection stopped")
	}
	return err
}

// removeDue deletes, in batches, the bytes that were marked before a time.
func (c *Collector) removeDue(ctx context.Context, turn turn, before time.Time, did *Collected) error {
	abandoned, err := c.abandoned(ctx)
	if err != nil {
		return err
	}
	var batch []registry.Digest
	flush := func() error {
		digests := batch
		batch = nil
		return c.removeBatch(ctx, turn, storage.RemovalRequest{Digests: digests, Before: before, Abandoned: abandoned}, did)
	}
	for d, err := range c.Garbage.MarkedBefore(ctx, before) {
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

// removeSurplus deletes the own bytes of content that has had a recipe for the grace period. Until then, a copy of the catalog
// from before the recipe can still be followed by a copy of the bytes, and pulls from a bucket end.
func (c *Collector) removeSurplus(ctx context.Context, turn turn, now time.Time, did *Collected) error {
	if c.Surplus == nil {
		return nil
	}
	var before time.Time
	if !c.Alone {
		before = now.Add(-c.wait())
	}
	abandoned, err := c.abandoned(ctx)
	if err != nil {
		return err
	}
	for d, err := range c.Surplus(ctx, before) {
		if err == nil {
			err = c.removeOwn(ctx, turn, storage.RemovalRequest{Digests: []registry.Digest{d}, Abandoned: abandoned, Own: true}, did)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// removeOwn deletes the own bytes of one content. A removal that was not tried leaves no mark.
func (c *Collector) removeOwn(ctx context.Context, turn turn, r storage.RemovalRequest, did *Collected) error {
	sizes, err := c.sizes(ctx, r.Digests)
	if err != nil {
		return err
	}
	r.ID, r.Lasting = rand.Text(), storage.RemovalTime
	begun, err := c.Garbage.BeginRemoval(ctx, r)
	if err != nil || len(begun) == 0 {
		return err
	}
	stored, over := split(begun, sizes)
	removed, kept, err := c.remove(ctx, turn, r.ID, stored)
	for _, d := range removed {
		did.Composed++
		did.ComposedBytes += sizes[d]
	}
	over = append(over, kept...)
	if !c.Remover.Repeatable() {
		over = append(over, removed...)
	}
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
	defer cancel()
	return errors.Join(err, c.Garbage.EndRemoval(ending, r.ID, over, nil))
}

// abandoned returns a time such that permits of removals that had ended by then are no longer
// in use. It returns the zero time while another collector hangs with such a permit.
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

// removeBatch deletes the digests of a batch that no repository holds. It splits them into
// removals that each fit into their time. Digests that are not stored were deleted by an earlier
// collection, whose removal has expired since: their marks go without another deletion.
func (c *Collector) removeBatch(ctx context.Context, turn turn, r storage.RemovalRequest, did *Collected) error {
	sizes, err := c.sizes(ctx, r.Digests)
	if err != nil {
		return err
	}
	r.Lasting = storage.RemovalTime
	for len(r.Digests) > 0 {
		r.ID = rand.Text()
		begun, err := c.Garbage.BeginRemoval(ctx, r)
		if err != nil || len(begun) == 0 {
			return err
		}
		stored, over := split(begun, sizes)
		removed, kept, err := c.remove(ctx, turn, r.ID, stored)
		for _, d := range removed {
			did.Blobs++
			did.Bytes += sizes[d]
		}
		if !c.Remover.Repeatable() {
			over = append(over, removed...)
		}
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
		err = errors.Join(err, c.Garbage.EndRemoval(ending, r.ID, over, kept))
		cancel()
		if err != nil || len(removed) == 0 {
			return err
		}
		r.Digests = kept
	}
	return nil
}

// split separates the digests that are stored, which have a size, from all others.
func split(digests []registry.Digest, sizes map[registry.Digest]int64) (stored, missing []registry.Digest) {
	for _, d := range digests {
		if _, ok := sizes[d]; ok {
			stored = append(stored, d)
		} else {
			missing = append(missing, d)
		}
	}
	return stored, missing
}

// remove deletes the digests of a removal one by one while the removal lasts. It returns those
// that it deleted and those that it did not try.
func (c *Collector) remove(
	ctx context.Context,
	turn turn,
	id string,
	digests []registry.Digest,
) (removed, kept []registry.Digest, err error) {
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

// deletionError is a failed deletion, which may or may not have been carried out.
type deletionError struct{ error }

func (e deletionError) Unwrap() error { return e.error }

// removeSome deletes the first digests under one permit and returns their number. It gets the
// permit before it checks the removal. So the permit ends before the removal does, even if this
// process is suspended at that moment.
func (c *Collector) removeSome(
	ctx context.Context,
	turn turn,
	id string,
	digests []registry.Digest,
) (done int, err error) {
	until := time.Now().Add(storage.PermitTime)
	permit, err := c.Remover.Permit(ctx)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, permit.Close()) }()
	if err := c.lasts(ctx, turn); err != nil {
		return 0, err
	}
	lasts, err := c.Garbage.ConfirmRemoval(ctx, id, storage.PermitTime+storage.RemovalMargin)
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

// sizes returns the sizes of the blobs that are stored.
func (c *Collector) sizes(ctx context.Context, digests []registry.Digest) (map[registry.Digest]int64, error) {
	sizes := make(map[registry.Digest]int64, len(digests))
	for _, d := range digests {
		blob, size, err := c.Blobs.Open(ctx, d)
		if registry.HasCode(err, registry.CodeNotFound) {
			continue
		}
		if err == nil {
			err = blob.Close()
		}
		if err != nil {
			return nil, err
		}
		sizes[d] = size
	}
	return sizes, nil
}
