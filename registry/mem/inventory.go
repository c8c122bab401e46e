package mem

import (
	"context"
	"slices"
	"time"

	"mlpromote.dev/mlpromote/registry"
)

// HeldDigests lists a page of what repositories hold.
func (db *DB) HeldDigests(ctx context.Context, after registry.Digest, since time.Time, limit int) ([]registry.Digest, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	db.mu.RLock()
	defer db.mu.RUnlock()
	var digests []registry.Digest
	for key, a := range db.ages {
		if key.digest > after && !a.created.Before(since) {
			digests = append(digests, key.digest)
		}
	}
	slices.Sort(digests)
	digests = slices.Compact(digests)
	return digests[:min(limit, len(digests))], nil
}

// Holders lists the repositories that hold a digest.
func (db *DB) Holders(ctx context.Context, d registry.Digest) ([]string, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	db.mu.RLock()
	defer db.mu.RUnlock()
	var repositories []string
	for key := range db.ages {
		if key.digest == d {
			repositories = append(repositories, key.repository)
		}
	}
	slices.Sort(repositories)
	return slices.Compact(repositories), nil
}
