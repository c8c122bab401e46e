package mem

import (
	"context"
	"time"

	"mlpromote.dev/mlpromote/registry"
)

var _ registry.Leases = (*DB)(nil)

// lease is who has a lease, and until when.
type lease struct {
	holder string
	until  time.Time
}

// Acquire gives or prolongs a lease.
func (db *DB) Acquire(ctx context.Context, name, holder string, d time.Duration) (bool, error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	db.mu.Lock()
	defer db.mu.Unlock()
	now := db.now()
	if have, ok := db.leases[name]; ok && have.holder != holder && have.until.After(now) {
		return false, nil
	}
	db.leases[name] = lease{holder, now.Add(d)}
	return true, nil
}

// Release ends a lease.
func (db *DB) Release(ctx context.Context, name, holder string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.leases[name].holder == holder {
		delete(db.leases, name)
	}
	return nil
}
