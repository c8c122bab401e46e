package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/internal/catalog"
	"mlpromote.dev/mlpromote/registry/sqlite/internal/dbsqlc"
	"mlpromote.dev/mlpromote/registry/storage"
)

var (
	_ storage.GCStore   = (*DB)(nil)
	_ storage.MarkStore = (*DB)(nil)
	_ storage.Removals  = (*DB)(nil)
)

// Repositories lists repositories in byte order.
func (db *DB) Repositories(ctx context.Context) ([]string, error) {
	names, err := db.read().RepositoryList(ctx)
	return names, db.interpretError("repositories", err)
}

// laterTime is the later of two times.
func laterTime(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// WithoutRepository returns the digests that no repository holds.
func (db *DB) WithoutRepository(ctx context.Context, digests []registry.Digest) ([]registry.Digest, error) {
	var unheld []registry.Digest
	err := db.snapshot(ctx, func(q *dbsqlc.Queries) error {
		for _, d := range digests {
			held, err := q.Held(ctx, string(d))
			if err != nil {
				return err
			}
			if !held {
				unheld = append(unheld, d)
			}
		}
		return nil
	})
	return unheld, db.interpretError("find unheld bytes", err)
}

// Mark marks the digests as unheld.
func (db *DB) Mark(ctx context.Context, at time.Time, digests []registry.Digest) error {
	now := db.now()
	err := db.transaction(ctx, func(q *dbsqlc.Queries) error {
		for _, d := range digests {
			if err := q.CondemnedAdd(ctx, dbsqlc.CondemnedAddParams{Digest: string(d), At: laterTime(at, now).UnixMicro()}); err != nil {
				return err
			}
		}
		return nil
	})
	return db.interpretError("mark bytes", err)
}

// Unmark unmarks d. It reads first, to save a write if d is not marked.
func (db *DB) Unmark(ctx context.Context, d registry.Digest) (storage.Removal, error) {
	r, err := catalog.Unmark(func() (storage.Removal, bool, error) {
		row, err := db.read().RemovalOf(ctx, string(d))
		if errors.Is(err, sql.ErrNoRows) {
			return storage.Removal{}, false, nil
		}
		return storage.Removal{ID: row.Removal, Left: fromMicros(row.Until).Sub(db.now())}, true, err
	}, func() (int64, error) { return db.write().CondemnedRemove(ctx, string(d)) })
	return r, db.interpretError(fmt.Sprintf("unmark blob %s", d), err)
}

// MarkedBefore reads in pages and holds nothing open between them.
func (db *DB) MarkedBefore(ctx context.Context, before time.Time) iter.Seq2[registry.Digest, error] {
	return catalog.Pages(pageSize, func(last *string) ([]string, error) {
		page := dbsqlc.CondemnedPageParams{Before: before.UnixMicro(), PageSize: pageSize}
		if last != nil {
			page.After = *last
		}
		rows, err := db.read().CondemnedPage(ctx, page)
		return rows, db.interpretError("marked bytes", err)
	}, func(d string) (registry.Digest, error) { return registry.Digest(d), nil })
}
