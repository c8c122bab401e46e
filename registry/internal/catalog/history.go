package catalog

import (
	"encoding/json"
	"iter"
	"math"
	"time"

	"mlpromote.dev/mlpromote/registry"
)

// Page selects up to Size bodies with After < seq < Before, in the order of the query.
type Page struct {
	After, Before int64
	Size          int
}

// History reads events page by page. It holds nothing open between pages, so the catalog can
// change during the sequence. interpret converts errors of the database.
func History(
	q registry.HistoryQuery, size int, read func(Page) ([]string, error), interpret func(error) error,
) iter.Seq2[registry.Event, error] {
	return func(yield func(registry.Event, error) bool) {
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
				yield(registry.Event{}, interpret(err))
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
func DecodeEvent(body string) (registry.Event, error) {
	var event registry.Event
	if err := json.Unmarshal([]byte(body), &event); err != nil {
		return registry.Event{}, registry.Errorf(registry.CodeTrust,
			"the history has an entry that is not an event, so it was changed: %w", err)
	}
	return event, nil
}

// DecodeEvents reads the bodies of rows.
func DecodeEvents(bodies []string) ([]registry.Event, error) {
	var events []registry.Event
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
func EncodeEvent(e registry.Event) (string, error) {
	body, err := registry.CanonicalJSON(e)
	return string(body), err
}

// Recorded returns the record of a row of the history index. Errors: CodeTrust, because the
// time is that of the event.
func Recorded(seq int64, at string) (registry.Record, error) {
	t, err := time.Parse(time.RFC3339Nano, at)
	if err != nil {
		return registry.Record{}, registry.Errorf(registry.CodeTrust,
			"event %d has the time %q, so it was changed: %w", seq, at, err)
	}
	return registry.Record{Seq: seq, Time: t}, nil
}
