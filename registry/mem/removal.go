package mem

import (
	"context"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/storage"
)

// CatalogTime is the time of the clock that the database was given.
func (db *DB) CatalogTime(ctx context.Context) (time.Time, error) {
	return micros(db.now()), ctx.Err()
}

// BeginRemoval holds the lock of everything.
func (db *DB) BeginRemoval(ctx context.Context, r storage.RemovalRequest) (begun []registry.Digest, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	db.mu.Lock()
	defer db.mu.Unlock()
	for _, d := range r.Digests {
		c, ok := db.marked[d]
		switch {
		case r.Own:
			if db.hasRecipe(d) && (!ok || c.removal != "" && !c.until.After(r.Abandoned)) {
				db.marked[d] = deletionMark{micros(db.now()), r.ID, micros(db.now()).Add(r.Lasting)}
				begun = append(begun, d)
			}
		case !ok || c.removal != "" && c.until.After(r.Abandoned):
		case db.holds(d) || c.removal != "" && db.hasRecipe(d):
			delete(db.marked, d)
		case !c.at.After(r.Before):
			delete(db.recipes, d)
			db.marked[d] = deletionMark{c.at, r.ID, micros(db.now()).Add(r.Lasting)}
			begun = append(begun, d)
		}
	}
	return begun, nil
}

// ConfirmRemoval reports whether a removal lasts.
func (db *DB) ConfirmRemoval(ctx context.Context, id string, least time.Duration) (bool, error) {
	db.mu.RLock()
	defer db.mu.RUnlock()
	lasts := false
	for _, c := range db.marked {
		if c.removal != id {
			continue
		}
		if lasts = !c.until.Before(db.now().Add(least)); !lasts {
			break
		}
	}
	return lasts, ctx.Err()
}

// EndRemoval ends a removal.
func (db *DB) EndRemoval(ctx context.Context, id string, removed, kept []registry.Digest) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	db.mu.Lock()
	defer db.mu.Unlock()
	for _, d := range removed {
		if db.marked[d].removal == id {
			delete(db.marked, d)
		}
	}
	for _, d := range kept {
		if c := db.marked[d]; c.removal == id {
			db.marked[d] = deletionMark{at: c.at}
		}
	}
	return nil
}

// TakeOver forgets the traces of a removal that has ended by itself.
func (db *DB) TakeOver(ctx context.Context, d registry.Digest, id string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	db.mu.Lock()
	defer db.mu.Unlock()
	if c := db.marked[d]; c.removal == id && !c.until.After(db.now()) {
		delete(db.marked, d)
	}
	return nil
}
