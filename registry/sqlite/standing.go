package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/internal/catalog"
	"mlpromote.dev/mlpromote/registry/sqlite/internal/dbsqlc"
	"mlpromote.dev/mlpromote/registry/storage"
)

// tx reads and writes rows in a transaction.
type tx struct {
	*dbsqlc.Queries
	now time.Time // of the transaction, by the clock of the catalog; reads do not need it
}

var _ catalog.Rows = tx{}

// optional returns the zero value if a query found no row.
func optional[V any](v V, err error) (V, error) {
	if errors.Is(err, sql.ErrNoRows) {
		var none V
		return none, nil
	}
	return v, err
}

// LastBody returns the body of the newest event, or "".
func (q tx) LastBody(ctx context.Context) (string, error) { return optional(q.HistoryLast(ctx)) }

// HeadRow returns a head, or the zero Head.
func (q tx) HeadRow(ctx context.Context, environment, model string) (history.Head, error) {
	row, err := q.HeadGet(ctx, dbsqlc.HeadGetParams{Environment: environment, Model: model})
	return optional(head(row), err)
}

// ConfigurationParts lists the parts of the agreed configuration.
func (q tx) ConfigurationParts(ctx context.Context) ([]history.ConfigurationPart, error) {
	rows, err := q.ConfigurationList(ctx)
	return catalog.Convert(rows, func(row dbsqlc.Configuration) history.ConfigurationPart {
		return history.ConfigurationPart{Name: row.Part, Digest: registry.Digest(row.Digest)}
	}), err
}

// Documents lists a page of documents of a kind.
func (q tx) Documents(ctx context.Context, kind, after string, limit int) ([]catalog.DocumentRow, error) {
	rows, err := q.DocumentPage(ctx, dbsqlc.DocumentPageParams{Kind: kind, After: after, PageSize: int64(limit)})
	return catalog.Convert(rows, documentRow), err
}

// BodiesSince returns the bodies of a model's events after a sequence number.
func (q tx) BodiesSince(ctx context.Context, model string, after int64) ([]string, error) {
	return q.HistorySince(ctx, dbsqlc.HistorySinceParams{Model: model, After: after})
}

// Tag returns the digest that a tag names, or "".
func (q tx) Tag(ctx context.Context, repository, tag string) (registry.Digest, error) {
	d, err := optional(q.TagGet(ctx, dbsqlc.TagGetParams{Repository: repository, Tag: tag}))
	return registry.Digest(d), err
}

// UnmarkManifest unmarks the record of a manifest.
func (q tx) UnmarkManifest(ctx context.Context, m storage.ManifestPlace) (int64, error) {
	return q.ManifestRescind(ctx, dbsqlc.ManifestRescindParams{Repository: m.Repository, Digest: string(m.Digest)})
}

// ModelState returns the state of a model in an environment.
func (db *DB) ModelState(ctx context.Context, environment, model string) (history.ModelState, error) {
	var state history.ModelState
	err := db.snapshot(ctx, func(q *dbsqlc.Queries) (err error) {
		state, err = catalog.ModelState(ctx, tx{Queries: q}, environment, model)
		return err
	})
	return state, db.interpretError(fmt.Sprintf("state of %s in %s", model, environment), err)
}
