package mem

import (
	"context"
	"time"

	"mlpromote.dev/mlpromote/registry"
)

var _ registry.Leases = (*DB)(nil)

type lease struct {
	holder string
	until  time.Time
}

// AcquireLease compares and swaps.
func (db *DB) AcquireLease(ctx context.Context, name, holder string, now, until time.Time) (bool, error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	db.mu.Lock()
	defer db.mu.Unlock()
	if have, ok := db.leases[name]; ok && have.holder != holder && have.until.After(now) {
		return false, nil
	}
	db.leases[name] = lease{holder, until}
	return true, nil
}

// ReleaseLease gives a lease up.
func (db *DB) ReleaseLease(ctx context.Context, name, holder string) error {
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
