package client

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"net/http"
	"strconv"
	"strings"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/internal/wire"
)

// maxEvent bounds one event on the wire.
const maxEvent = 1 << 20

// longestBackoff is how long at most the client waits before it connects anew.
const longestBackoff = 30 * time.Second

// Events follows the history of the service from behind an event on, by environment,
// model and kind as q selects; the rest of q counts for nothing. It connects again where
// the connection breaks off, and ends with ctx, or with the first error that asking again
// would not change.
func (c *Client) Events(ctx context.Context, q registry.HistoryQuery) iter.Seq2[registry.Event, error] {
	return func(yield func(registry.Event, error) bool) {
		wait := c.backoff
		for {
			before := q.After
			done, err := c.stream(ctx, &q, yield)
			switch {
			case done:
				return
			case ctx.Err() != nil:
				yield(registry.Event{}, ctx.Err())
				return
			case err != nil && registry.CodeOf(err) != registry.CodeUnavailable:
				yield(registry.Event{}, err)
				return
			case err == nil || q.After > before:
				wait = c.backoff
			default:
				wait = min(2*wait, longestBackoff)
			}
			timer := time.NewTimer(wait)
			select {
			case <-ctx.Done():
			case <-timer.C:
			}
			timer.Stop()
		}
	}
}

// stream follows one connection, and moves q along. It is done when nobody wants more.
func (c *Client) stream(ctx context.Context, q *registry.HistoryQuery, yield func(registry.Event, error) bool) (done bool, err error) {
	values := query("environment", q.Environment, "model", q.Model, "kind", string(q.Kind))
	values.Set("after", strconv.FormatInt(q.After, 10))
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.at(wire.EventsPath, values), nil)
	if err != nil {
		return false, err
	}
	response, err := c.http.Do(request)
	if err != nil {
		return false, registry.Errorf(registry.CodeUnavailable, "no answer from %s: %w", c.base, err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		body, err := io.ReadAll(io.LimitReader(response.Body, maxEvent))
		if err != nil {
			return false, registry.Errorf(registry.CodeUnavailable, "%s: %w", c.base, err)
		}
		return false, c.refused(request, answer{response.StatusCode, response.Header, body}, nil)
	}
	if !strings.HasPrefix(response.Header.Get("Content-Type"), "text/event-stream") {
		return false, registry.Errorf(registry.CodeInvalid, "%s is no mlpromote service: it has no stream of events", c.base)
	}
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, maxEvent)
	data := ""
	for lines.Scan() {
		if line, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			data = line
		}
		if lines.Text() != "" || data == "" { // an event ends with an empty line, or not at all
			continue
		}
		var e registry.Event
		if err := json.Unmarshal([]byte(data), &e); err != nil || e.Seq <= q.After {
			return false, registry.Errorf(registry.CodeInvalid, "%s sent what is no event, or not the next one", c.base)
		}
		q.After, data = e.Seq, ""
		if !yield(e, nil) {
			return true, nil
		}
	}
	if errors.Is(lines.Err(), bufio.ErrTooLong) {
		return false, registry.Errorf(registry.CodeInvalid, "%s sent an event of more than %d bytes", c.base, maxEvent)
	}
	return false, nil
}
