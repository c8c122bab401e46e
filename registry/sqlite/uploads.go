package sqlite

import (
	"context"
	"errors"
	"iter"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/sqlite/internal/dbsqlc"
)

// CreateUpload records the state of an upload.
func (db *DB) CreateUpload(ctx context.Context, s registry.UploadState) error {
	err := db.unsynced(ctx, func(q *dbsqlc.Queries) error {
		return q.UploadCreate(ctx, dbsqlc.UploadCreateParams{
			ID: s.ID, Repository: s.Owner.Repository, Principal: s.Owner.Principal,
			Arrived: s.Offset, Hash: notNull(s.Hash), Place: s.Place, Touched: s.Touched.UnixMicro(),
		})
	})
	return db.interpretError("upload "+s.ID, err)
}

// Upload gives the state of an upload.
func (db *DB) Upload(ctx context.Context, owner registry.UploadOwner, id string) (registry.UploadState, error) {
	row, err := db.read().UploadGet(ctx, dbsqlc.UploadGetParams{ID: id, Repository: owner.Repository, Principal: owner.Principal})
	if err != nil {
		return registry.UploadState{}, db.interpretError("upload "+id, err)
	}
	return uploadState(row), nil
}

// SwapUpload replaces the state of an upload.
func (db *DB) SwapUpload(ctx context.Context, s registry.UploadState) error {
	return db.changeUpload(ctx, s.ID, func(q *dbsqlc.Queries) (int64, error) {
		return q.UploadSwap(ctx, dbsqlc.UploadSwapParams{
			ID: s.ID, Version: s.Version,
			Arrived: s.Offset, Hash: notNull(s.Hash), Place: s.Place, Touched: s.Touched.UnixMicro(),
		})
	})
}

// EndUpload forgets an upload.
func (db *DB) EndUpload(ctx context.Context, id string, version int64) error {
	return db.changeUpload(ctx, id, func(q *dbsqlc.Queries) (int64, error) {
		return q.UploadEnd(ctx, dbsqlc.UploadEndParams{ID: id, Version: version})
	})
}

// changeUpload makes a change that finds its row, or says why it did not.
func (db *DB) changeUpload(ctx context.Context, id string, change func(*dbsqlc.Queries) (int64, error)) error {
	err := db.unsynced(ctx, func(q *dbsqlc.Queries) error {
		if n, err := change(q); n > 0 || err != nil {
			return err
		}
		if _, err := q.UploadVersion(ctx, id); err != nil {
			return err
		}
		return registry.Errorf(registry.CodeConflict, "upload %s: somebody else went on with it; ask how far it has come", id)
	})
	return db.interpretError("upload "+id, err)
}

// CountUploads counts uploads that are under way.
func (db *DB) CountUploads(ctx context.Context, principal string, since time.Time) (int, error) {
	n, err := db.read().UploadCount(ctx, dbsqlc.UploadCountParams{Principal: principal, Since: since.UnixMicro()})
	return int(n), db.interpretError("uploads of "+principal, err)
}

// StaleUploads reads in pages and holds nothing open between them, so that uploads can
// be ended while the sequence runs.
func (db *DB) StaleUploads(ctx context.Context, before time.Time) iter.Seq2[registry.UploadState, error] {
	return func(yield func(registry.UploadState, error) bool) {
		page := dbsqlc.UploadStaleParams{Before: before.UnixMicro(), PageSize: pageSize}
		for {
			rows, err := db.read().UploadStale(ctx, page)
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

func uploadState(row dbsqlc.Upload) registry.UploadState {
	return registry.UploadState{
		ID: row.ID, Owner: registry.UploadOwner{Repository: row.Repository, Principal: row.Principal},
		Offset: row.Arrived, Hash: row.Hash, Place: row.Place, Version: row.Version, Touched: fromMicros(row.Touched),
	}
}

// notNull is b, or an empty slice for a nil one, which a column would take for NULL.
func notNull(b []byte) []byte { return append([]byte{}, b...) }

// unsynced runs a change that does not wait for the disk: several of them belong to every
// blob that is pushed, and a power failure may undo them. What others commit later takes
// them along. It holds the writer's connection meanwhile, so that within this process
// nobody waits for a lock of the database, which would be by asking again and again.
func (db *DB) unsynced(ctx context.Context, change func(*dbsqlc.Queries) error) (err error) {
	turn, err := db.writer.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, turn.Close()) }()
	return change(dbsqlc.New(db.hasty))
}
