package gc

import (
	"context"
	"iter"
	"time"

	"mlpromote.dev/mlpromote/registry"
)

// byteBatch is the number of digests per lookup.
const byteBatch = 500

// collectBytes marks the bytes that no repository holds, and deletes those that were marked
// long enough ago.
func (c *Collector) collectBytes(ctx context.Context, turn turn, now time.Time, did *Collected) error {
	for unheld, err := range c.unheld(ctx) {
		if err != nil {
			return err
		}
		if err := c.Garbage.Mark(ctx, now, unheld); err != nil {
			return err
		}
	}
	due := now.Add(-c.wait())
	if c.Alone { // include what was marked a moment ago, by a clock that has advanced since
		due = now.Add(time.Hour)
	}
	return c.removeDue(ctx, turn, due, did)
}

// unheld lists the stored digests that no repository holds, in batches.
func (c *Collector) unheld(ctx context.Context) iter.Seq2[[]registry.Digest, error] {
	return func(yield func([]registry.Digest, error) bool) {
		var batch []registry.Digest
		flush := func() bool {
			unheld, err := c.Garbage.WithoutRepository(ctx, batch)
			batch = batch[:0]
			return (err == nil && len(unheld) == 0) || yield(unheld, err) && err == nil
		}
		for d, err := range c.Blobs.Digests(ctx) {
			if err != nil {
				yield(nil, err)
				return
			}
			if batch = append(batch, d); len(batch) == byteBatch && !flush() {
				return
			}
		}
		flush()
	}
}
