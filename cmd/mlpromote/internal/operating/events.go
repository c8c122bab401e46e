package operating

import (
	"context"
	"fmt"
	"slices"
	"time"

	"mlpromote.dev/mlpromote/cmd/internal/ui"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/auditing"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/clock"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/wiring"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/history"
)

// newestEvents are the newest events, oldest first: at most q.Limit, and none older than since;
// 0 is no bound. last is the number of the newest one, whether or not it is too old.
func newestEvents(ctx context.Context, i *wiring.Instance, q history.HistoryQuery,
	since time.Duration) (found []history.Event, last int64, err error) {
	if q.Limit < 0 || since < 0 {
		return nil, 0, registry.Errorf(registry.CodeInvalid, "--limit %d, --since %s: want 0 for all, or more", q.Limit, since)
	}
	q.Descending = q.Limit > 0 // the newest, and not the first
	events, err := i.History(ctx, q)
	if q.Descending {
		slices.Reverse(events)
	}
	if len(events) > 0 {
		last = events[len(events)-1].Seq
	}
	if since > 0 {
		events = slices.DeleteFunc(events, func(e history.Event) bool { return clock.Now().Sub(e.Time) > since })
	}
	return events, last, err
}

// eventCells are the columns of an event.
func eventCells(e history.Event) []string {
	return []string{fmt.Sprint(e.Seq), e.Time.UTC().Format(time.DateTime), ui.Dash(e.Principal),
		string(e.Kind), e.Environment, e.Model, e.Version, ui.Dash(auditing.Detail(e))}
}
