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
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/rest"
)

// maxEvent limits the size of one event.
const maxEvent = 1 << 20

// longestBackoff is the longest wait before the client reconnects.
const longestBackoff = 30 * time.Second

// Events follows the history of the service after q.After, filtered by the environment, model
// and kind of q. It ignores the other fields of q. It reconnects after an interruption, and
// ends with ctx or with the first error that a retry would not change.
func (c *Client) Events(ctx context.Context, q history.HistoryQuery) iter.Seq2[history.Event, error] {
	return func(yield func(history.Event, error) bool) {
		wait := c.backoff
		for {
			before := q.After
			done, err := c.stream(ctx, &q, yield)
			switch {
			case done:
				return
			case ctx.Err() != nil:
				yield(history.Event{}, ctx.Err())
				return
			case err != nil && registry.ExitCode(err) != registry.ExitAgain:
				yield(history.Event{}, err)
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

// stream follows one connection and advances q. It returns true when the caller wants no more
// events.
func (c *Client) stream(
	ctx context.Context,
	q *history.HistoryQuery,
	yield func(history.Event, error) bool,
) (done bool, err error) {
	sent, err := rest.Send(&rest.Events.Row, rest.EventsQuery{Environment: q.Environment, Model: q.Model, Kind: q.Kind})
	if err != nil {
		return false, err
	}
	sent.Query.Set("after", strconv.FormatInt(q.After, 10)) // 0 too: all events
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.at(sent.Path, sent.Query), nil)
	if err != nil {
		return false, err
	}
	response, err := c.http.Do(request)
	if err != nil {
		return false, c.noResponse(err)
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
		return false, registry.Errorf(registry.CodeInvalid, "%s is not an mlpromote service: it has no event stream", c.base)
	}
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, maxEvent)
	data := ""
	for lines.Scan() {
		if line, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			data = line
		}
		if lines.Text() != "" || data == "" { // an empty line ends an event; otherwise the event is incomplete
			continue
		}
		var e history.Event
		if err := json.Unmarshal([]byte(data), &e); err != nil || e.Seq <= q.After {
			return false, registry.Errorf(registry.CodeInvalid, "%s sent an invalid event, or one out of order", c.base)
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
