package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/sqlite/internal/dbsqlc"
)

// History reads in pages and holds nothing open between them, so that changes can be
// made while the sequence runs.
func (db *DB) History(ctx context.Context, query registry.HistoryQuery) iter.Seq2[registry.Event, error] {
	return func(yield func(registry.Event, error) bool) {
		page := dbsqlc.HistoryAscendingParams{
			Environment: query.Environment, Model: query.Model, Kind: string(query.Kind),
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
			page.PageSize = int64(min(left, pageSize))
			bodies, err := db.historyPage(ctx, query, page)
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
	key := dbsqlc.HistoryNewestHashParams{Environment: environment, Model: model}
	hash, err := recall(db.steady, key, func() (string, error) { return db.read().HistoryNewestHash(ctx, key) })
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil
	}
	if err != nil {
		return "", db.interpretError(fmt.Sprintf("last event of %s in %s", model, environment), err)
	}
	return registry.Digest(hash), nil
}

// historyPage asks the query whose index serves best.
func (db *DB) historyPage(ctx context.Context, query registry.HistoryQuery, page dbsqlc.HistoryAscendingParams) ([]string, error) {
	q := db.read()
	ofModel := query.Environment != "" && query.Model != ""
	switch {
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

// decodeEvent reads the body of a row. One that is no event was changed by hand.
func decodeEvent(body string) (registry.Event, error) {
	var event registry.Event
	if err := json.Unmarshal([]byte(body), &event); err != nil {
		return registry.Event{}, registry.Errorf(registry.CodeTrust, "history has a row that is no event, so it was changed: %w", err)
	}
	return event, nil
}
