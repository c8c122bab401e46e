package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/internal/requestid"
	"mlpromote.dev/mlpromote/registry/rest"
)

// Times and limits of event streams.
const (
	streamTime   = 30 * time.Minute // then the client reconnects and authenticates again
	writeTimeout = 30 * time.Second
	streamPage   = 100
)

// getEvents streams the history as server-sent events (HTML standard, section 9.2). The ID of each
// event is its number in the history, so a client continues an interrupted stream with
// Last-Event-ID or after. Without either, the stream begins with the next event.
func getEvents(s server, r *request) (*response, error) {
	q, err := historyQuery(r)
	if err != nil {
		return nil, err
	}
	q.Limit = streamPage
	from := r.Values.Get("after")
	if last := r.Header.Get("Last-Event-ID"); last != "" {
		from = last
	}
	if q.After, err = sequence("Last-Event-ID or after", from); err != nil {
		return nil, err
	}
	newest, err := s.feed.Newest(r.Context())
	if err != nil {
		return nil, err
	}
	// Refuse what the caller may not see before the stream begins.
	visible := history.HistoryQuery{Environment: q.Environment, Model: q.Model, After: newest, Limit: 1}
	if _, err := s.Registry.History(r.Context(), visible); err != nil {
		return nil, err
	}
	switch {
	case from == "":
		q.After = newest
	case q.After > newest: // events up to that number would never be sent
		return nil, registry.Errorf(registry.CodeInvalid,
			"Last-Event-ID or after %d: the history ends with %d, perhaps after a restore from a backup: read it again and continue from there",
			q.After, newest)
	}
	return &response{stream: func(w http.ResponseWriter, r *request) error { return stream(s, w, r, q) }}, nil
}

func stream(s server, w http.ResponseWriter, r *request, q history.HistoryQuery) error {
	closed, err := s.streams.Add(callerOf(r.Request))
	if err != nil {
		return refusal{error: err, header: http.Header{"Retry-After": {"30"}}}
	}
	defer closed()
	header := w.Header()
	header.Set("Content-Type", rest.StreamType)
	header.Set("Cache-Control", never)
	header.Set("X-Accel-Buffering", "no") // proxies must not buffer
	w.WriteHeader(http.StatusOK)
	if r.Method == http.MethodHead {
		return nil
	}
	ctx, cancel := context.WithTimeout(r.Context(), streamTime)
	defer cancel()
	go func() {
		select {
		case <-s.Stop:
			cancel()
		case <-ctx.Done():
		}
	}()
	out := &eventWriter{w: w, controller: http.NewResponseController(w)}
	defer out.done()
	if err := out.text("retry: 2000\n\n"); err != nil {
		return nil // the client is gone
	}
	still := func() error { return s.StillAdmitted(r.Request) }
	switch err := followEvents(ctx, s, out, q, still); {
	case err == nil, errors.Is(err, errWrite), ctx.Err() != nil:
	case registry.HasCode(err, registry.CodeUnauthenticated), registry.HasCode(err, registry.CodeForbidden):
		s.Logger.InfoContext(ctx, "stream of events ended", "request", requestid.Of(ctx), "error", err)
	default:
		s.Logger.ErrorContext(ctx, "stream of events", "request", requestid.Of(ctx), "error", err)
	}
	return nil
}

// followEvents writes events until ctx ends or still fails. It calls still after each read and before
// it writes the result.
func followEvents(ctx context.Context, s server, out *eventWriter, q history.HistoryQuery, still func() error) error {
	for ctx.Err() == nil {
		// The following read includes at least these events. Those that are missing in its result are
		// hidden from the caller.
		seen, err := s.feed.Current(ctx)
		if err != nil {
			return err
		}
		events, err := s.Registry.History(ctx, q)
		if err == nil {
			err = still()
		}
		if err != nil {
			return err
		}
		for _, e := range events {
			if err := out.event(e); err != nil {
				return err
			}
			q.After = e.Seq
		}
		if len(events) == streamPage {
			continue
		}
		q.After = max(q.After, seen)
		if err := waitForEvents(ctx, s, out, q.After, still); err != nil {
			return err
		}
	}
	return nil
}

// waitForEvents returns when an event after the number exists or ctx ends. Meanwhile it sends heartbeats
// to the client.
func waitForEvents(ctx context.Context, s server, out *eventWriter, after int64, still func() error) error {
	for {
		more, err := s.feed.Wait(ctx, after, s.Heartbeat)
		if err != nil || more || ctx.Err() != nil {
			return err
		}
		if err := still(); err != nil {
			return err
		}
		if err := out.text(": still here\n\n"); err != nil {
			return err
		}
	}
}

// errWrite means that the client is gone.
var errWrite = errors.New("write events")

// eventWriter writes server-sent events with a deadline.
type eventWriter struct {
	w          http.ResponseWriter
	controller *http.ResponseController
}

func (o *eventWriter) event(e history.Event) error {
	data, err := json.Marshal(e)
	if err != nil {
		return err
	}
	return o.text(fmt.Sprintf("id: %d\nevent: %s\ndata: %s\n\n", e.Seq, e.Kind, data))
}

// done removes the deadline, which must not apply to later requests of the same connection.
func (o *eventWriter) done() {
	_ = o.controller.SetWriteDeadline(time.Time{}) // a connection without deadlines needs no reset
}

func (o *eventWriter) text(text string) error {
	if err := o.controller.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil &&
		!errors.Is(err, http.ErrNotSupported) {
		return errors.Join(errWrite, err)
	}
	if _, err := o.w.Write([]byte(text)); err != nil {
		return errors.Join(errWrite, err)
	}
	if err := o.controller.Flush(); err != nil {
		return errors.Join(errWrite, err)
	}
	return nil
}
