package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/internal/requestid"
)

// Times and bounds of streams of events.
const (
	streamTime   = 30 * time.Minute // then the client comes again, and says anew who it is
	writeTimeout = 30 * time.Second
	streamPage   = 100
)

// eventsQuery is what a stream can be asked for.
func eventsQuery() []string { return []string{"environment", "model", "kind", "after"} }

// events streams what happens as server-sent events (HTML standard, section 9.2). The
// identifier of each is its number in the history, so that Last-Event-ID, or after, goes
// on where a stream broke off. Without either it begins with what happens next.
func (s server) events(r *request) (*response, error) {
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
	newest, err := s.feed.newest(r.Context())
	if err != nil {
		return nil, err
	}
	// What may not be seen at all is told before the stream begins.
	if _, err := s.Registry.History(r.Context(), registry.HistoryQuery{Environment: q.Environment, Model: q.Model, After: newest, Limit: 1}); err != nil {
		return nil, err
	}
	switch {
	case from == "":
		q.After = newest
	case q.After > newest: // what comes up to there would never be told
		return nil, registry.Errorf(registry.CodeInvalid,
			"Last-Event-ID or after %d: the history ends with %d, as one does that was restored from a backup: read it anew, and go on from there", q.After, newest)
	}
	return &response{stream: func(w http.ResponseWriter, r *request) error { return s.stream(w, r, q) }}, nil
}

func (s server) stream(w http.ResponseWriter, r *request, q registry.HistoryQuery) error {
	closed, err := s.streams.add(callerOf(r.Request))
	if err != nil {
		return err
	}
	defer closed()
	header := w.Header()
	header.Set("Content-Type", streamType)
	header.Set("Cache-Control", never)
	header.Set("X-Accel-Buffering", "no") // proxies shall not collect
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
	switch err := s.follow(ctx, out, q, still); {
	case err == nil, errors.Is(err, errWrite), ctx.Err() != nil:
	case registry.HasCode(err, registry.CodeUnauthenticated), registry.HasCode(err, registry.CodeForbidden):
		s.Logger.InfoContext(ctx, "stream of events ended", "request", requestid.Of(ctx), "error", err)
	default:
		s.Logger.ErrorContext(ctx, "stream of events", "request", requestid.Of(ctx), "error", err)
	}
	return nil
}

// follow writes events until ctx ends, or still gives an error, which is asked after each look
// and before anything is told of what it found.
func (s server) follow(ctx context.Context, out *eventWriter, q registry.HistoryQuery, still func() error) error {
	for ctx.Err() == nil {
		// What is found is newer than this, or cannot be seen by the caller: either way it
		// was looked at.
		seen, err := s.feed.current(ctx)
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
		if err := s.idle(ctx, out, q.After, still); err != nil {
			return err
		}
	}
	return nil
}

// idle returns when there is an event behind a number, or ctx ends. Until then it lets the
// client know that the connection lives.
func (s server) idle(ctx context.Context, out *eventWriter, after int64, still func() error) error {
	for {
		more, err := s.feed.wait(ctx, after, s.Heartbeat)
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

// eventWriter writes server-sent events to a client that has to take them in time.
type eventWriter struct {
	w          http.ResponseWriter
	controller *http.ResponseController
}

func (o *eventWriter) event(e registry.Event) error {
	data, err := json.Marshal(e)
	if err != nil {
		return err
	}
	return o.text(fmt.Sprintf("id: %d\nevent: %s\ndata: %s\n\n", e.Seq, e.Kind, data))
}

// done takes back the deadline, which was for the stream and not for what the same
// connection carries next.
func (o *eventWriter) done() {
	_ = o.controller.SetWriteDeadline(time.Time{}) // where there are none, none is left
}

func (o *eventWriter) text(text string) error {
	if err := o.controller.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil && !errors.Is(err, http.ErrNotSupported) {
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
