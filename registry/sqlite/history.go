package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/internal/catalog"
	"mlpromote.dev/mlpromote/registry/sqlite/internal/dbsqlc"
)

// History reads page by page, each from its own snapshot.
func (db *DB) History(ctx context.Context, query history.HistoryQuery) iter.Seq2[history.Event, error] {
	return catalog.History(query, pageSize,
		func(p catalog.Page) ([]string, error) {
			return db.historyPage(ctx, query, dbsqlc.HistoryAscendingParams{
				Environment: query.Environment, Model: query.Model, Kind: string(query.Kind),
				After: p.After, Before: p.Before, PageSize: int64(p.Size),
			})
		},
		func(err error) error { return db.interpretError("history", err) })
}

// LastEvent returns the hash of the newest event of a model in an environment. It remembers also
// that there is none: of most environments nothing was restricted, and every resolve asks.
func (db *DB) LastEvent(ctx context.Context, environment, model string) (registry.Digest, error) {
	key := dbsqlc.HistoryNewestHashParams{Environment: environment, Model: model}
	hash, err := recall(ctx, db.steady, key, func() (string, error) {
		hash, err := db.read().HistoryNewestHash(ctx, key)
		if errors.Is(err, sql.ErrNoRows) {
			return "", nil
		}
		return hash, err
	})
	if err != nil {
		return "", db.interpretError(fmt.Sprintf("last event of %s in %s", model, environment), err)
	}
	return registry.Digest(hash), nil
}

// historyPage runs the query with the best index.
func (db *DB) historyPage(
	ctx context.Context,
	query history.HistoryQuery,
	page dbsqlc.HistoryAscendingParams,
) ([]string, error) {
	q := db.read()
	ofModel := query.Environment != "" && query.Model != ""
	switch {
	case query.Hash != "":
		return q.HistoryOfHash(ctx, dbsqlc.HistoryOfHashParams{
			Hash: string(query.Hash), Environment: page.Environment, Model: page.Model, Kind: page.Kind,
			Subject: string(query.Subject), After: page.After, Before: page.Before,
		})
	case query.Subject != "" && query.Descending:
		return q.HistoryOfSubjectDescending(ctx, dbsqlc.HistoryOfSubjectDescendingParams{
			Subject: string(query.Subject), Environment: page.Environment, Model: page.Model, Kind: page.Kind,
			After: page.After, Before: page.Before, PageSize: page.PageSize,
		})
	case query.Subject != "":
		return q.HistoryOfSubjectAscending(ctx, dbsqlc.HistoryOfSubjectAscendingParams{
			Subject: string(query.Subject), Environment: page.Environment, Model: page.Model, Kind: page.Kind,
			After: page.After, Before: page.Before, PageSize: page.PageSize,
		})
	case ofModel && query.Descending:
		return q.HistoryOfModelDescending(ctx, dbsqlc.HistoryOfModelDescendingParams(page))
	case ofModel:
		return q.HistoryOfModelAscending(ctx, dbsqlc.HistoryOfModelAscendingParams(page))
	case query.Descending:
		return q.HistoryDescending(ctx, dbsqlc.HistoryDescendingParams(page))
	}
	return q.HistoryAscending(ctx, page)
}
