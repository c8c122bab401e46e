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
// long enough ago. If nothing has to wait, it begins again after recipes were deleted, whose parts may be unheld then.
func (c *Collector) collectBytes(ctx context.Context, turn turn, now time.Time, did *Collected) error {
	recipes, err := c.recipes(ctx)
	if err == nil {
		err = c.collectOnce(ctx, turn, now, did)
	}
	if err != nil || !c.Alone || recipes == 0 {
		return err
	}
	if left, err := c.recipes(ctx); err != nil || left == recipes {
		return err
	}
	return c.collectOnce(ctx, turn, now, did)
}

// recipes counts the recipes.
func (c *Collector) recipes(ctx context.Context) (n int, err error) {
	for _, err := range c.composable(ctx) {
		if err != nil {
			return 0, err
		}
		n++
	}
	return n, nil
}

func (c *Collector) collectOnce(ctx context.Context, turn turn, now time.Time, did *Collected) error {
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

// unheld lists the digests that are stored or have a recipe and that no repository holds, in batches.
func (c *Collector) unheld(ctx context.Context) iter.Seq2[[]registry.Digest, error] {
	return func(yield func([]registry.Digest, error) bool) {
		var batch []registry.Digest
		flush := func() bool {
			unheld, err := c.Garbage.WithoutRepository(ctx, batch)
			batch = batch[:0]
			return (err == nil && len(unheld) == 0) || yield(unheld, err) && err == nil
		}
		for _, digests := range []iter.Seq2[registry.Digest, error]{c.Blobs.Digests(ctx), c.composable(ctx)} {
			for d, err := range digests {
				if err != nil {
					yield(nil, err)
					return
				}
				if batch = append(batch, d); len(batch) == byteBatch && !flush() {
					return
				}
			}
		}
		flush()
	}
}

// composable lists the digests that have a recipe.
func (c *Collector) composable(ctx context.Context) iter.Seq2[registry.Digest, error] {
	return func(yield func(registry.Digest, error) bool) {
		for after := registry.Digest(""); ; {
			page, err := c.Garbage.RecipeDigests(ctx, after, byteBatch)
			if err != nil {
				yield("", err)
				return
			}
			for _, d := range page {
				if !yield(d, nil) {
					return
				}
				after = d
			}
			if len(page) < byteBatch {
				return
			}
		}
	}
}
