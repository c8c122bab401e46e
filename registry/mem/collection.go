package mem

import (
	"context"
	"iter"
	"maps"
	"slices"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/storage"
)

var (
	_ storage.GCStore   = (*DB)(nil)
	_ storage.MarkStore = (*DB)(nil)
	_ storage.Removals  = (*DB)(nil)
)

// Repositories lists repositories in byte order.
func (db *DB) Repositories(ctx context.Context) ([]string, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	db.mu.RLock()
	defer db.mu.RUnlock()
	names := make(map[string]bool)
	for key := range db.ages {
		names[key.repository] = true
	}
	return slices.Sorted(maps.Keys(names)), nil
}

// WithoutRepository returns the digests that no repository holds.
func (db *DB) WithoutRepository(ctx context.Context, digests []registry.Digest) ([]registry.Digest, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	db.mu.RLock()
	defer db.mu.RUnlock()
	var unheld []registry.Digest
	for _, d := range digests {
		if !db.holds(d) {
			unheld = append(unheld, d)
		}
	}
	return unheld, nil
}

func (db *DB) holds(d registry.Digest) bool {
	for key := range db.ages {
		if key.digest == d {
			return true
		}
	}
	return db.isPart(d)
}

// Mark notes that nobody holds the digests.
func (db *DB) Mark(ctx context.Context, at time.Time, digests []registry.Digest) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	db.mu.Lock()
	defer db.mu.Unlock()
	for _, d := range digests {
		if _, ok := db.marked[d]; !ok {
			db.marked[d] = deletionMark{at: db.notBefore(at)}
		}
	}
	return nil
}

// Unmark forgets that d is marked.
func (db *DB) Unmark(ctx context.Context, d registry.Digest) (storage.Removal, error) {
	if err := ctx.Err(); err != nil {
		return storage.Removal{}, err
	}
	db.mu.Lock()
	defer db.mu.Unlock()
	if c := db.marked[d]; c.removal != "" {
		if db.hasRecipe(d) { // its own bytes are removed, and nobody waits for that
			return storage.Removal{}, nil
		}
		return storage.Removal{ID: c.removal, Left: c.until.Sub(db.now())}, nil
	}
	delete(db.marked, d)
	return storage.Removal{}, nil
}

// MarkedBefore lists the content marked when the sequence was started.
func (db *DB) MarkedBefore(ctx context.Context, before time.Time) iter.Seq2[registry.Digest, error] {
	return func(yield func(registry.Digest, error) bool) {
		db.mu.RLock()
		var due []registry.Digest
		for d, c := range db.marked {
			if !c.at.After(before) {
				due = append(due, d)
			}
		}
		db.mu.RUnlock()
		yieldAll(ctx, due, yield)
	}
}
