package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"mlpromote.dev/mlpromote/registry/sqlite/internal/dbsqlc"
)

// Acquire gives or prolongs a lease.
func (db *DB) Acquire(ctx context.Context, name, holder string, d time.Duration) (got bool, err error) {
	err = db.transaction(ctx, func(q *dbsqlc.Queries) error {
		now := time.Now()
		have, err := q.LeaseGet(ctx, name)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		if err == nil && have.Holder != holder && have.Until > now.UnixMicro() {
			return nil
		}
		got = true
		return q.LeaseSet(ctx, dbsqlc.LeaseSetParams{Name: name, Holder: holder, Until: now.Add(d).UnixMicro()})
	})
	return got && err == nil, db.interpretError("lease "+name, err)
}

// Release ends a lease.
func (db *DB) Release(ctx context.Context, name, holder string) error {
	return db.interpretError("lease "+name, db.write().LeaseRelease(ctx, dbsqlc.LeaseReleaseParams{Name: name, Holder: holder}))
}
