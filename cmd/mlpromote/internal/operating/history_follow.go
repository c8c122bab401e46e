package operating

import (
	"context"
	"fmt"
	"time"

	"mlpromote.dev/mlpromote/cmd/internal/ui"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/program"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/wiring"
	"mlpromote.dev/mlpromote/registry/history"
)

// lookEvery is how often a data directory is asked for new events. Nothing tells other
// processes of them.
const lookEvery = time.Second

// followHistory prints what newestEvents gives, and then every event as it comes, until the
// verb is interrupted, which is its regular end.
func followHistory(ctx context.Context, a *program.App, q history.HistoryQuery, since time.Duration) error {
	a.UI.Streams = true
	var last int64
	err := a.With(ctx, func(i *wiring.Instance) error {
		var first []history.Event
		var err error
		if first, last, err = newestEvents(ctx, i, q, since); err != nil {
			return err
		}
		if err := tellEventHeader(a); err != nil {
			return err
		}
		if err := tellEvents(a, first); err != nil || i.Events == nil {
			return err
		}
		q := history.HistoryQuery{Environment: q.Environment, Model: q.Model, After: last}
		for e, err := range i.Events(ctx, q) {
			if err != nil {
				return err
			}
			if err := tellEvents(a, []history.Event{e}); err != nil {
				return err
			}
		}
		return nil
	})
	for err == nil && ctx.Err() == nil {
		err = look(ctx, a, history.HistoryQuery{Environment: q.Environment, Model: q.Model, After: last}, &last)
	}
	if ctx.Err() != nil {
		return nil //nolint:nilerr // an interrupt is how following ends
	}
	return err
}

// tellEventHeader prints the names of the columns, once it is known that events can be read.
func tellEventHeader(a *program.App) error {
	if a.UI.JSON {
		return nil
	}
	return a.UI.Line(eventLine([]string{"EVENT", "TIME", "WHO", "WHAT", "ENVIRONMENT", "MODEL", "VERSION", "DETAIL"}), nil)
}

// look waits a moment and prints what came since. It opens the data directory each time, so
// that a service or a collection, which want it for themselves, need not wait.
func look(ctx context.Context, a *program.App, q history.HistoryQuery, last *int64) error {
	timer := time.NewTimer(lookEvery)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
	}
	return a.With(ctx, func(i *wiring.Instance) error {
		fresh, err := i.History(ctx, q)
		if err != nil || len(fresh) == 0 {
			return err
		}
		*last = fresh[len(fresh)-1].Seq
		return tellEvents(a, fresh)
	})
}

func tellEvents(a *program.App, all []history.Event) error {
	for _, e := range all {
		if err := a.UI.Line(eventLine(eventCells(e)), e); err != nil {
			return err
		}
	}
	return nil
}

// eventLine lines up the cells of one event with those of others that are not known yet.
func eventLine(cells []string) string {
	widths := []int{5, len(time.DateTime), 10, 14, 11, 24, 10}
	line := ""
	for i, cell := range cells {
		if cell = ui.Plain(cell); i < len(widths) {
			cell = fmt.Sprintf("%-*s  ", widths[i], cell)
		}
		line += cell
	}
	return line
}
