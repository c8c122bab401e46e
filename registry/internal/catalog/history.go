package catalog

import (
	"encoding/json"
	"iter"
	"math"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/history"
)

// Page selects up to Size bodies with After < seq < Before, in the order of the query.
type Page struct {
	After, Before int64
	Size          int
}

// History reads events page by page. It holds nothing open between pages, so the catalog can
// change during the sequence. interpret converts errors of the database.
func History(
	q history.HistoryQuery, size int, read func(Page) ([]string, error), interpret func(error) error,
) iter.Seq2[history.Event, error] {
	return func(yield func(history.Event, error) bool) {
		page := Page{After: q.After, Before: q.Before}
		if q.Before == 0 {
			page.Before = math.MaxInt64
		}
		left := q.Limit
		if left <= 0 {
			left = math.MaxInt
		}
		for {
			page.Size = size
			if q.Signer == "" && q.Principal == "" { // else more are read than are selected
				page.Size = min(left, size)
			}
			bodies, err := read(page)
			if err != nil {
				yield(history.Event{}, interpret(err))
				return
			}
			seq := page.After
			for _, body := range bodies {
				event, err := DecodeEvent(body)
				if err == nil && (event.Seq <= page.After || event.Seq >= page.Before) {
					err = registry.Errorf(registry.CodeTrust, "event %d is stored with another sequence number, so it was changed", event.Seq)
				}
				if err == nil && !q.SelectsBy(event) {
					seq = event.Seq
					continue
				}
				if left--; !yield(event, err) || err != nil || left == 0 {
					return
				}
				seq = event.Seq
			}
			if len(bodies) < size {
				return
			}
			if q.Descending {
				page.Before = seq
			} else {
				page.After = seq
			}
		}
	}
}

// DecodeEvent decodes the body of a row. Errors: CodeTrust, because the catalog writes only
// valid events.
func DecodeEvent(body string) (history.Event, error) {
	var event history.Event
	if err := json.Unmarshal([]byte(body), &event); err != nil {
		return history.Event{}, registry.Errorf(registry.CodeTrust,
			"the history has an entry that is not an event, so it was changed: %w", err)
	}
	return event, nil
}

// DecodeEvents reads the bodies of rows.
func DecodeEvents(bodies []string) ([]history.Event, error) {
	var events []history.Event
	for _, body := range bodies {
		event, err := DecodeEvent(body)
		if err != nil {
			return nil, err
		}
		events = append(events, event)
	}
	return events, nil
}

// EncodeEvent writes the body of a row.
func EncodeEvent(e history.Event) (string, error) {
	body, err := registry.CanonicalJSON(e)
	return string(body), err
}

// Recorded returns the record of a row of the history index. Errors: CodeTrust, because the
// time is that of the event.
func Recorded(seq int64, at string) (history.Record, error) {
	t, err := time.Parse(time.RFC3339Nano, at)
	if err != nil {
		return history.Record{}, registry.Errorf(registry.CodeTrust,
			"event %d has the time %q, so it was changed: %w", seq, at, err)
	}
	return history.Record{Seq: seq, Time: t}, nil
}
