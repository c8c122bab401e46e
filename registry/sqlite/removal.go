package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/sqlite/internal/dbsqlc"
	"mlpromote.dev/mlpromote/registry/storage"
)

// BeginRemoval holds the write lock of the database. It sees digests that a writer added before
// that; a writer that adds one later sees the removal.
func (db *DB) BeginRemoval(ctx context.Context, r storage.RemovalRequest) ([]registry.Digest, error) {
	var begun []registry.Digest
	until := db.now().Add(r.Lasting).UnixMicro()
	err := db.transaction(ctx, func(q *dbsqlc.Queries) error {
		for _, d := range r.Digests {
			begin := beginRemoval
			if r.Own {
				begin = db.beginOwnRemoval
			}
			mine, err := begin(ctx, q, d, r, until)
			if err != nil {
				return err
			}
			if mine {
				begun = append(begun, d)
			}
		}
		return nil
	})
	if err != nil {
		return nil, db.interpretError("begin to remove blobs", err)
	}
	return begun, nil
}

// beginRemoval begins the removal of one digest and reports whether it could.
func beginRemoval(
	ctx context.Context,
	q *dbsqlc.Queries,
	d registry.Digest,
	r storage.RemovalRequest,
	until int64,
) (bool, error) {
	row, err := q.CondemnedGet(ctx, string(d))
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	if err != nil || row.Removal != "" && row.Until > r.Abandoned.UnixMicro() {
		return false, err
	}
	held, err := q.Held(ctx, string(d))
	if err != nil {
		return false, err
	}
	own := false // an abandoned removal of own bytes
	if row.Removal != "" {
		if own, err = q.RecipeHas(ctx, string(d)); err != nil {
			return false, err
		}
	}
	if held || own {
		return false, q.RemovalSpare(ctx, string(d))
	}
	if row.At > r.Before.UnixMicro() {
		return false, nil
	}
	if err := deleteRecipe(ctx, q, d); err != nil {
		return false, err
	}
	return true, q.RemovalBegin(ctx, dbsqlc.RemovalBeginParams{Digest: string(d), Removal: r.ID, Until: until})
}

// beginOwnRemoval begins the removal of the own bytes of one digest and reports whether it could.
func (db *DB) beginOwnRemoval(ctx context.Context, q *dbsqlc.Queries, d registry.Digest, r storage.RemovalRequest, until int64) (bool, error) {
	has, err := q.RecipeHas(ctx, string(d))
	if err != nil || !has {
		return false, err
	}
	row, err := q.CondemnedGet(ctx, string(d))
	switch {
	case errors.Is(err, sql.ErrNoRows):
		err = q.CondemnedAdd(ctx, dbsqlc.CondemnedAddParams{Digest: string(d), At: db.now().UnixMicro()})
	case err == nil && (row.Removal == "" || row.Until > r.Abandoned.UnixMicro()):
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, q.RemovalBegin(ctx, dbsqlc.RemovalBeginParams{Digest: string(d), Removal: r.ID, Until: until})
}

// ConfirmRemoval uses the clock of this machine.
func (db *DB) ConfirmRemoval(ctx context.Context, id string, least time.Duration) (bool, error) {
	until, err := db.read().RemovalUntil(ctx, id)
	return err == nil && until >= db.now().Add(least).UnixMicro(), db.interpretError("removal of blobs", err)
}

// EndRemoval ends a removal.
func (db *DB) EndRemoval(ctx context.Context, id string, removed, kept []registry.Digest) error {
	err := db.transaction(ctx, func(q *dbsqlc.Queries) error {
		for _, d := range removed {
			if err := q.RemovalEnd(ctx, dbsqlc.RemovalEndParams{Digest: string(d), Removal: id}); err != nil {
				return err
			}
		}
		for _, d := range kept {
			if err := q.RemovalUndo(ctx, dbsqlc.RemovalUndoParams{Digest: string(d), Removal: id}); err != nil {
				return err
			}
		}
		return nil
	})
	return db.interpretError("end the removal of blobs", err)
}

// TakeOver deletes the rest of an expired removal.
func (db *DB) TakeOver(ctx context.Context, d registry.Digest, id string) error {
	err := db.write().
		CondemnedTakeOver(ctx, dbsqlc.CondemnedTakeOverParams{Digest: string(d), Removal: id, Now: db.now().UnixMicro()})
	return db.interpretError("take over the removal of blob "+string(d), err)
}
