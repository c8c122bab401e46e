package postgres

import (
	"context"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/internal/catalog"
	"mlpromote.dev/mlpromote/registry/postgres/internal/dbsqlc"
	"mlpromote.dev/mlpromote/registry/storage"
)

// BeginRemoval first locks all names. It sees digests that a writer added before that; a writer
// that adds one later sees the removal.
func (db *DB) BeginRemoval(ctx context.Context, r storage.RemovalRequest) ([]registry.Digest, error) {
	var begun []registry.Digest
	err := db.transaction(ctx, func(ctx context.Context, q *dbsqlc.Queries) error {
		if err := q.CollectionLock(ctx); err != nil {
			return err
		}
		if r.Own {
			rows, err := q.RemovalBeginOwn(ctx, dbsqlc.RemovalBeginOwnParams{
				Removal: r.ID, Lasting: r.Lasting.Microseconds(), Digests: texts(r.Digests), Abandoned: r.Abandoned,
			})
			begun = catalog.Digests(rows)
			return err
		}
		if err := q.RemovalSpare(ctx, dbsqlc.RemovalSpareParams{Digests: texts(r.Digests), Abandoned: r.Abandoned}); err != nil {
			return err
		}
		rows, err := q.RemovalBegin(ctx, dbsqlc.RemovalBeginParams{
			Removal: r.ID, Lasting: r.Lasting.Microseconds(), Digests: texts(r.Digests), Before: r.Before, Abandoned: r.Abandoned,
		})
		begun = catalog.Digests(rows)
		if err != nil || len(rows) == 0 {
			return err
		}
		return deleteRecipes(ctx, q, rows)
	})
	if err != nil {
		return nil, db.interpretError("begin to remove blobs", err)
	}
	return begun, nil
}

// ConfirmRemoval uses the clock of the server.
func (db *DB) ConfirmRemoval(ctx context.Context, id string, least time.Duration) (bool, error) {
	ctx, cancel := db.limit(ctx)
	defer cancel()
	lasts, err := db.queries().RemovalLasts(ctx, dbsqlc.RemovalLastsParams{Removal: id, Least: least.Microseconds()})
	return lasts && err == nil, db.interpretError("removal of blobs", err)
}

// EndRemoval ends a removal.
func (db *DB) EndRemoval(ctx context.Context, id string, removed, kept []registry.Digest) error {
	err := db.transaction(ctx, func(ctx context.Context, q *dbsqlc.Queries) error {
		if err := q.RemovalEnd(ctx, dbsqlc.RemovalEndParams{Removal: id, Digests: texts(removed)}); err != nil {
			return err
		}
		return q.RemovalUndo(ctx, dbsqlc.RemovalUndoParams{Removal: id, Digests: texts(kept)})
	})
	return db.interpretError("end the removal of blobs", err)
}

// TakeOver deletes the rest of an expired removal.
func (db *DB) TakeOver(ctx context.Context, d registry.Digest, id string) error {
	ctx, cancel := db.limit(ctx)
	defer cancel()
	err := db.queries().CondemnedTakeOver(ctx, dbsqlc.CondemnedTakeOverParams{Digest: string(d), Removal: id})
	return db.interpretError("take over the removal of blob "+string(d), err)
}
