package postgres

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/jackc/pgx/v5"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/internal/catalog"
	"mlpromote.dev/mlpromote/registry/postgres/internal/dbsqlc"
)

// History reads page by page, each from its own snapshot.
func (db *DB) History(ctx context.Context, query history.HistoryQuery) iter.Seq2[history.Event, error] {
	return catalog.History(query, pageSize,
		func(p catalog.Page) ([]string, error) {
			return db.historyPage(ctx, query, dbsqlc.HistoryAscendingParams{
				Environment: query.Environment, Model: query.Model, Kind: string(query.Kind), Subject: string(query.Subject),
				After: p.After, Before: p.Before, PageSize: int32(p.Size),
			})
		},
		func(err error) error { return db.interpretError("history", err) })
}

// LastEvent returns the hash of the newest event of a model in an environment.
func (db *DB) LastEvent(ctx context.Context, environment, model string) (registry.Digest, error) {
	ctx, cancel := db.limit(ctx)
	defer cancel()
	hash, err := db.queries().
		HistoryNewestHash(ctx, dbsqlc.HistoryNewestHashParams{Environment: environment, Model: model})
	if errors.Is(err, pgx.ErrNoRows) {
		return "", nil
	}
	if err != nil {
		return "", db.interpretError(fmt.Sprintf("last event of %s in %s", model, environment), err)
	}
	return registry.Digest(hash), nil
}

func (db *DB) historyPage(
	ctx context.Context,
	query history.HistoryQuery,
	page dbsqlc.HistoryAscendingParams,
) ([]string, error) {
	ctx, cancel := db.limit(ctx)
	defer cancel()
	switch {
	case query.Hash != "":
		return db.queries().HistoryOfHash(ctx, dbsqlc.HistoryOfHashParams{
			Hash: string(query.Hash), Environment: page.Environment, Model: page.Model, Kind: page.Kind, Subject: page.Subject,
			After: page.After, Before: page.Before,
		})
	case query.Descending:
		return db.filtered().HistoryDescending(ctx, dbsqlc.HistoryDescendingParams(page))
	}
	return db.filtered().HistoryAscending(ctx, page)
}
