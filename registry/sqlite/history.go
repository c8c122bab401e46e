package sqlite

import (
	"context"
	"encoding/json"
	"iter"
	"math"
	"slices"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/sqlite/internal/dbsqlc"
)

// History reads in pages and holds nothing open between them, so that changes can be
// made while the sequence runs.
func (db *DB) History(ctx context.Context, query registry.HistoryQuery) iter.Seq2[registry.Event, error] {
	return func(yield func(registry.Event, error) bool) {
		page := dbsqlc.HistoryAscendingParams{
			Environment: query.Environment, Model: query.Model, Kind: string(query.Kind),
			After: query.After, Before: math.MaxInt64, PageSize: pageSize,
		}
		for {
			bodies, err := db.historyPage(ctx, query, page)
			if err != nil {
				yield(registry.Event{}, db.interpretError("history", err))
				return
			}
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
			if len(bodies) < pageSize || query.Subject != "" {
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

// historyPage asks the query whose index serves best.
func (db *DB) historyPage(ctx context.Context, query registry.HistoryQuery, page dbsqlc.HistoryAscendingParams) ([]string, error) {
	q := db.read()
	ofModel := query.Environment != "" && query.Model != ""
	switch {
	case query.Subject != "":
		bodies, err := q.HistoryOfSubject(ctx, dbsqlc.HistoryOfSubjectParams{
			Subject: string(query.Subject), Environment: page.Environment, Model: page.Model, Kind: page.Kind, After: page.After,
		})
		if query.Descending {
			slices.Reverse(bodies)
		}
		return bodies, err
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
