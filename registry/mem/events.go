package mem

import (
	"slices"

	"mlpromote.dev/mlpromote/registry/history"
)

// selected is events for who holds the lock.
func (db *DB) selected(q history.HistoryQuery) []history.Event {
	var found []history.Event
	for _, e := range db.history {
		if selects(q, e) {
			e.Evidence, e.Skipped = slices.Clone(e.Evidence), slices.Clone(e.Skipped)
			found = append(found, e)
		}
	}
	if q.Descending {
		slices.Reverse(found)
	}
	if q.Limit > 0 {
		found = found[:min(q.Limit, len(found))]
	}
	return found
}

func selects(q history.HistoryQuery, e history.Event) bool {
	return e.Seq > q.After && (q.Before == 0 || e.Seq < q.Before) &&
		(q.Environment == "" || e.Environment == q.Environment) &&
		(q.Model == "" || e.Model == q.Model) &&
		(q.Kind == "" || e.Kind == q.Kind) &&
		(q.Subject == "" || e.Subject == q.Subject) &&
		(q.Hash == "" || e.Hash == q.Hash) &&
		q.SelectsBy(e)
}
