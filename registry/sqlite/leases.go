package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/sqlite/internal/dbsqlc"
)

var _ registry.Leases = (*DB)(nil)

// AcquireLease compares and swaps.
func (db *DB) AcquireLease(ctx context.Context, name, holder string, now, until time.Time) (bool, error) {
	acquired := false
	err := db.transaction(ctx, func(q *dbsqlc.Queries) error {
		have, err := q.LeaseGet(ctx, name)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		if err == nil && have.Holder != holder && have.Until > now.UnixMicro() {
			return nil
		}
		acquired = true
		return q.LeaseSet(ctx, dbsqlc.LeaseSetParams{Name: name, Holder: holder, Until: until.UnixMicro()})
	})
	return acquired && err == nil, db.interpretError("lease "+name, err)
}

// ReleaseLease gives a lease up.
func (db *DB) ReleaseLease(ctx context.Context, name, holder string) error {
	err := db.write().LeaseRelease(ctx, dbsqlc.LeaseReleaseParams{Name: name, Holder: holder})
	return db.interpretError("lease "+name, err)
}
