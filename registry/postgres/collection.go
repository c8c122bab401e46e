package postgres

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/jackc/pgx/v5"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/internal/catalog"
	"mlpromote.dev/mlpromote/registry/postgres/internal/dbsqlc"
	"mlpromote.dev/mlpromote/registry/storage"
)

// Repositories lists repositories in byte order.
func (db *DB) Repositories(ctx context.Context) ([]string, error) {
	ctx, cancel := db.limit(ctx)
	defer cancel()
	names, err := db.queries().RepositoryList(ctx)
	return names, db.interpretError("repositories", err)
}

// Records returns what a repository holds.
func (db *DB) Records(ctx context.Context, repository string) ([]storage.GCRecord, error) {
	var all []storage.GCRecord
	err := db.snapshot(ctx, func(ctx context.Context, q *dbsqlc.Queries) (err error) {
		all, err = catalog.Records(ctx, records{q, repository})
		return err
	})
	return all, db.interpretError("holdings of "+repository, err)
}

// UpdateRecords locks all names while decide runs, also those of other repositories. Reads and writes
// of names are many small transactions, which wait for it.
func (db *DB) UpdateRecords(
	ctx context.Context,
	repository string,
	decide func([]storage.GCRecord) (storage.GCChanges, error),
) error {
	err := db.transaction(ctx, func(ctx context.Context, q *dbsqlc.Queries) error {
		if err := q.CollectionLock(ctx); err != nil {
			return err
		}
		return catalog.UpdateRecords(ctx, records{q, repository}, decide)
	})
	return db.interpretError("settle "+repository, err)
}

// WithoutRepository returns the digests that no repository holds.
func (db *DB) WithoutRepository(ctx context.Context, digests []registry.Digest) ([]registry.Digest, error) {
	ctx, cancel := db.limit(ctx)
	defer cancel()
	rows, err := db.queries().Unheld(ctx, texts(digests))
	return catalog.Digests(rows), db.interpretError("find unheld bytes", err)
}

// texts converts digests to the values of a column.
func texts(digests []registry.Digest) []string {
	all := make([]string, len(digests))
	for i, d := range digests {
		all[i] = string(d)
	}
	return all
}

// Mark marks the digests as unheld.
func (db *DB) Mark(ctx context.Context, at time.Time, digests []registry.Digest) error {
	ctx, cancel := db.limit(ctx)
	defer cancel()
	return db.interpretError("mark bytes",
		db.queries().CondemnedAdd(ctx, dbsqlc.CondemnedAddParams{At: at, Digests: texts(digests)}))
}

// Unmark unmarks d. It reads first, to save a write if d is not marked.
func (db *DB) Unmark(ctx context.Context, d registry.Digest) (storage.Removal, error) {
	ctx, cancel := db.limit(ctx)
	defer cancel()
	r, err := catalog.Unmark(func() (storage.Removal, bool, error) {
		row, err := db.queries().CondemnedGet(ctx, string(d))
		if errors.Is(err, pgx.ErrNoRows) {
			return storage.Removal{}, false, nil
		}
		return storage.Removal{ID: row.Removal, Left: time.Duration(row.Microseconds) * time.Microsecond}, true, err
	}, func() (int64, error) { return db.queries().CondemnedRemove(ctx, string(d)) })
	return r, db.interpretError(fmt.Sprintf("unmark blob %s", d), err)
}

// MarkedBefore reads in pages and holds nothing open between them.
func (db *DB) MarkedBefore(ctx context.Context, before time.Time) iter.Seq2[registry.Digest, error] {
	return catalog.Pages(pageSize, func(last *string) ([]string, error) {
		page := dbsqlc.CondemnedPageParams{Before: before, PageSize: pageSize}
		if last != nil {
			page.After = *last
		}
		rows, err := db.duePage(ctx, page)
		return rows, db.interpretError("marked bytes", err)
	}, func(d string) (registry.Digest, error) { return registry.Digest(d), nil })
}

func (db *DB) duePage(ctx context.Context, page dbsqlc.CondemnedPageParams) ([]string, error) {
	ctx, cancel := db.limit(ctx)
	defer cancel()
	return db.queries().CondemnedPage(ctx, page)
}
