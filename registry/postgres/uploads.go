package postgres

import (
	"context"
	"iter"
	"time"

	"github.com/jackc/pgx/v5"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/postgres/internal/dbsqlc"
)

// CreateUpload records the state of an upload.
func (db *DB) CreateUpload(ctx context.Context, s registry.UploadState) error {
	err := db.unsynced(ctx, func(ctx context.Context, q *dbsqlc.Queries) error {
		return q.UploadCreate(ctx, dbsqlc.UploadCreateParams{
			ID: s.ID, Repository: s.Owner.Repository, Principal: s.Owner.Principal,
			Arrived: s.Offset, Hash: notNull(s.Hash), Place: s.Place,
		})
	})
	return db.interpretError("upload "+s.ID, err)
}

// Upload returns the state of an upload.
func (db *DB) Upload(ctx context.Context, owner registry.UploadOwner, id string) (registry.UploadState, error) {
	ctx, cancel := db.limit(ctx)
	defer cancel()
	row, err := db.queries().
		UploadGet(ctx, dbsqlc.UploadGetParams{ID: id, Repository: owner.Repository, Principal: owner.Principal})
	if unstorable(err) {
		err = pgx.ErrNoRows // an unstorable text is not an identifier
	}
	if err != nil {
		return registry.UploadState{}, db.interpretError("upload "+id, err)
	}
	return uploadState(row), nil
}

// SwapUpload replaces the state of an upload.
func (db *DB) SwapUpload(ctx context.Context, s registry.UploadState) error {
	return db.changeUpload(ctx, s.ID, func(ctx context.Context, q *dbsqlc.Queries) (int64, error) {
		return q.UploadSwap(ctx, dbsqlc.UploadSwapParams{
			ID: s.ID, Version: s.Version,
			Arrived: s.Offset, Hash: notNull(s.Hash), Place: s.Place,
		})
	})
}

// EndUpload deletes an upload.
func (db *DB) EndUpload(ctx context.Context, id string, version int64) error {
	return db.changeUpload(ctx, id, func(ctx context.Context, q *dbsqlc.Queries) (int64, error) {
		return q.UploadEnd(ctx, dbsqlc.UploadEndParams{ID: id, Version: version})
	})
}

// changeUpload changes an upload, or returns why its row was not found.
func (db *DB) changeUpload(
	ctx context.Context,
	id string,
	change func(context.Context, *dbsqlc.Queries) (int64, error),
) error {
	err := db.unsynced(ctx, func(ctx context.Context, q *dbsqlc.Queries) error {
		if n, err := change(ctx, q); n > 0 || err != nil {
			return err
		}
		if _, err := q.UploadVersion(ctx, id); err != nil {
			return err
		}
		return registry.Errorf(registry.CodeConflict,
			"upload %s: another request continued it; query its offset and continue there", id)
	})
	return db.interpretError("upload "+id, err)
}

// unsynced runs change in one transaction that does not wait for the disk.
func (db *DB) unsynced(ctx context.Context, change func(context.Context, *dbsqlc.Queries) error) error {
	return db.transaction(ctx, func(ctx context.Context, q *dbsqlc.Queries) error {
		if err := q.UploadUnsynced(ctx); err != nil {
			return err
		}
		return change(ctx, q)
	})
}

// CountUploads counts uploads in progress.
func (db *DB) CountUploads(ctx context.Context, principal string, within time.Duration) (int, error) {
	ctx, cancel := db.limit(ctx)
	defer cancel()
	n, err := db.queries().UploadCount(ctx, dbsqlc.UploadCountParams{Principal: principal, Within: within.Microseconds()})
	return int(n), db.interpretError("uploads of "+principal, err)
}

// StaleUploads reads page by page and holds nothing open in between, so that uploads can end
// during the sequence. An upload that is written meanwhile moves to the end.
func (db *DB) StaleUploads(ctx context.Context, idle time.Duration) iter.Seq2[registry.UploadState, error] {
	return func(yield func(registry.UploadState, error) bool) {
		before, err := db.idleSince(ctx, idle)
		if err != nil {
			yield(registry.UploadState{}, err)
			return
		}
		page := dbsqlc.UploadStaleParams{Before: before, PageSize: pageSize}
		for {
			rows, err := db.stalePage(ctx, page)
			if err != nil {
				yield(registry.UploadState{}, db.interpretError("uploads", err))
				return
			}
			for _, row := range rows {
				if !yield(uploadState(row), nil) {
					return
				}
			}
			if len(rows) < pageSize {
				return
			}
			last := rows[len(rows)-1]
			page.Touched, page.ID = last.Touched, last.ID
		}
	}
}

// idleSince returns the latest time at which a stale upload was last written.
func (db *DB) idleSince(ctx context.Context, idle time.Duration) (time.Time, error) {
	if idle == 0 {
		return endOfTime(), nil
	}
	now, err := db.CatalogTime(ctx)
	return now.Add(-idle), err
}

// endOfTime is later than the time of every row.
func endOfTime() time.Time { return time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC) }

func (db *DB) stalePage(ctx context.Context, page dbsqlc.UploadStaleParams) ([]dbsqlc.Upload, error) {
	ctx, cancel := db.limit(ctx)
	defer cancel()
	return db.queries().UploadStale(ctx, page)
}

func uploadState(row dbsqlc.Upload) registry.UploadState {
	return registry.UploadState{
		ID: row.ID, Owner: registry.UploadOwner{Repository: row.Repository, Principal: row.Principal},
		Offset: row.Arrived, Hash: row.Hash, Place: row.Place, Version: row.Version, Touched: row.Touched.UTC(),
	}
}

// notNull returns b, or an empty slice for nil, which would be stored as NULL.
func notNull(b []byte) []byte { return append([]byte{}, b...) }
