package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math"

	"github.com/jackc/pgx/v5"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/postgres/internal/dbsqlc"
)

// History reads in pages and holds nothing open between them, so that changes can be
// made while the sequence runs.
func (db *DB) History(ctx context.Context, query registry.HistoryQuery) iter.Seq2[registry.Event, error] {
	return func(yield func(registry.Event, error) bool) {
		page := dbsqlc.HistoryAscendingParams{
			Environment: query.Environment, Model: query.Model, Kind: string(query.Kind), Subject: string(query.Subject),
			After: query.After, Before: query.Before,
		}
		if query.Before == 0 {
			page.Before = math.MaxInt64
		}
		left := query.Limit
		if left <= 0 {
			left = math.MaxInt
		}
		for left > 0 {
			page.PageSize = int32(min(left, pageSize))
			bodies, err := db.historyPage(ctx, page, query.Descending)
			if err != nil {
				yield(registry.Event{}, db.interpretError("history", err))
				return
			}
			left -= len(bodies)
			seq := page.After
			for _, body := range bodies {
				event, err := decodeEvent(body)
				if err == nil && (event.Seq <= page.After || event.Seq >= page.Before) {
					err = registry.Errorf(registry.CodeTrust, "history row %d is stored as another row, so it was changed", event.Seq)
				}
				if !yield(event, err) || err != nil {
					return
				}
				seq = event.Seq
			}
			if len(bodies) < pageSize {
				return
			}
			if query.Descending {
				page.Before = seq
			} else {
				page.After = seq
			}
		}
	}
}

// LastEvent gives the hash of the newest event of a model in an environment.
func (db *DB) LastEvent(ctx context.Context, environment, model string) (registry.Digest, error) {
	ctx, cancel := db.limit(ctx)
	defer cancel()
	hash, err := db.queries().HistoryNewestHash(ctx, dbsqlc.HistoryNewestHashParams{Environment: environment, Model: model})
	if errors.Is(err, pgx.ErrNoRows) {
		return "", nil
	}
	if err != nil {
		return "", db.interpretError(fmt.Sprintf("last event of %s in %s", model, environment), err)
	}
	return registry.Digest(hash), nil
}

func (db *DB) historyPage(ctx context.Context, page dbsqlc.HistoryAscendingParams, descending bool) ([]string, error) {
	ctx, cancel := db.limit(ctx)
	defer cancel()
	if descending {
		return db.filtered().HistoryDescending(ctx, dbsqlc.HistoryDescendingParams(page))
	}
	return db.filtered().HistoryAscending(ctx, page)
}

// decodeEvent reads the body of a row. One that is no event was changed by hand.
func decodeEvent(body string) (registry.Event, error) {
	var event registry.Event
	if err := json.Unmarshal([]byte(body), &event); err != nil {
		return registry.Event{}, registry.Errorf(registry.CodeTrust, "history has a row that is no event, so it was changed: %w", err)
	}
	return event, nil
}
