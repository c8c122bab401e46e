package sqlite

import (
	"context"
	"iter"
	"math"
	"time"

	"mlpromote.dev/mlpromote/registry/internal/catalog"
	"mlpromote.dev/mlpromote/registry/sqlite/internal/dbsqlc"
	"mlpromote.dev/mlpromote/registry/storage"
)

// CreateUpload records the state of an upload.
func (db *DB) CreateUpload(ctx context.Context, s storage.UploadState) error {
	err := db.writes.doHastily(ctx, func(ctx context.Context, q *dbsqlc.Queries) error {
		return q.UploadCreate(ctx, dbsqlc.UploadCreateParams{
			ID: s.ID, Repository: s.Owner.Repository, Principal: s.Owner.Principal,
			Arrived: s.Offset, Hash: catalog.NotNull(s.Hash), Place: s.Place, Touched: db.now().UnixMicro(),
		})
	})
	return db.interpretError("upload "+s.ID, err)
}

// Upload returns the state of an upload.
func (db *DB) Upload(ctx context.Context, owner storage.UploadOwner, id string) (storage.UploadState, error) {
	row, err := db.read().
		UploadGet(ctx, dbsqlc.UploadGetParams{ID: id, Repository: owner.Repository, Principal: owner.Principal})
	if err != nil {
		return storage.UploadState{}, db.interpretError("upload "+id, err)
	}
	return uploadState(row), nil
}

// SwapUpload replaces the state of an upload.
func (db *DB) SwapUpload(ctx context.Context, s storage.UploadState) error {
	return db.changeUpload(ctx, s.ID, func(ctx context.Context, q *dbsqlc.Queries) (int64, error) {
		return q.UploadSwap(ctx, dbsqlc.UploadSwapParams{
			ID: s.ID, Version: s.Version,
			Arrived: s.Offset, Hash: catalog.NotNull(s.Hash), Place: s.Place, Touched: db.now().UnixMicro(),
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
func (db *DB) changeUpload(ctx context.Context, id string, change func(context.Context, *dbsqlc.Queries) (int64, error)) error {
	err := db.writes.doHastily(ctx, func(ctx context.Context, q *dbsqlc.Queries) error {
		return catalog.ChangeUpload(id,
			func() (int64, error) { return change(ctx, q) },
			func() (int64, error) { return q.UploadVersion(ctx, id) })
	})
	return db.interpretError("upload "+id, err)
}

// CountUploads counts uploads in progress.
func (db *DB) CountUploads(ctx context.Context, principal string, within time.Duration) (int, error) {
	n, err := db.read().
		UploadCount(ctx, dbsqlc.UploadCountParams{Principal: principal, Since: db.now().Add(-within).UnixMicro()})
	return int(n), db.interpretError("uploads of "+principal, err)
}

// StaleUploads reads page by page and holds nothing open in between, so that uploads can end
// during the sequence. An upload that is written meanwhile moves to the end.
func (db *DB) StaleUploads(ctx context.Context, idle time.Duration) iter.Seq2[storage.UploadState, error] {
	var page dbsqlc.UploadStaleParams
	return catalog.Pages(pageSize, func(last *dbsqlc.Upload) ([]dbsqlc.Upload, error) {
		if last == nil {
			page = dbsqlc.UploadStaleParams{Before: db.idleSince(idle), PageSize: pageSize}
		} else {
			page.Touched, page.ID = last.Touched, last.ID
		}
		rows, err := db.read().UploadStale(ctx, page)
		return rows, db.interpretError("uploads", err)
	}, func(row dbsqlc.Upload) (storage.UploadState, error) { return uploadState(row), nil })
}

// idleSince returns the latest time at which a stale upload was last written.
func (db *DB) idleSince(idle time.Duration) (micros int64) {
	if idle == 0 {
		return math.MaxInt64
	}
	return db.now().Add(-idle).UnixMicro()
}

func uploadState(row dbsqlc.Upload) storage.UploadState {
	return storage.UploadState{
		ID: row.ID, Owner: storage.UploadOwner{Repository: row.Repository, Principal: row.Principal},
		Offset: row.Arrived, Hash: row.Hash, Place: row.Place, Version: row.Version, Touched: fromMicros(row.Touched),
	}
}
