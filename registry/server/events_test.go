package server_test

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/registrytest"
	"mlpromote.dev/mlpromote/registry/server"
)

// listener is a client of a stream of events.
type listener struct {
	events chan history.Event
	closed chan struct{} // when the service has ended the stream
}

// listen asks for a stream on a network, and returns when it is open.
func listen(t *testing.T, w *world, path string, header ...string) *listener {
	t.Helper()
	s := httptest.NewServer(w.handler)
	t.Cleanup(s.Close)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	t.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	response, err := http.DefaultClient.Do(r) //nolint:bodyclose // by who reads it, below
	if err != nil {
		t.Fatal(err)
	}
	if response.StatusCode != http.StatusOK || response.Header.Get("Content-Type") != "text/event-stream" ||
		response.Header.Get("Cache-Control") != "no-store" {
		t.Fatalf("%d %v", response.StatusCode, response.Header)
	}
	l := &listener{events: make(chan history.Event, 100), closed: make(chan struct{})}
	go func() {
		defer close(l.closed)
		defer response.Body.Close()
		var id, kind string
		for lines := bufio.NewScanner(response.Body); lines.Scan(); {
			key, value, _ := strings.Cut(lines.Text(), ": ")
			switch key {
			case "id":
				id = value
			case "event":
				kind = value
			case "data":
				var e history.Event
				if err := json.Unmarshal([]byte(value), &e); err != nil || seq(e) != id || string(e.Kind) != kind {
					t.Errorf("event %s %s has the data %s (%v)", id, kind, value, err)
				}
				l.events <- e
			}
		}
	}()
	return l
}

// next waits for an event.
func (l *listener) next(t *testing.T) history.Event {
	t.Helper()
	select {
	case e := <-l.events:
		return e
	case <-time.After(20 * time.Second):
		t.Fatal("no event comes")
		return history.Event{}
	}
}

func TestEventsGoOnWhereTheyBrokeOff(t *testing.T) {
	t.Parallel()
	w := setup(t)
	release := w.Promoted(t, registrytest.Build{})
	events := walk[history.Event](t, w, "/api/v1/history?limit=1000", 1000)
	all, after, promotions := listen(t, w, "/api/v1/events?after=0"), listen(t, w, "/api/v1/events?after=999",
		"Last-Event-ID", "3"), listen(t, w, "/api/v1/events?after=0&kind=promote&environment=prod")
	for _, want := range events {
		if got := all.next(t); got.Hash != want.Hash {
			t.Errorf("event %d is %+v", want.Seq, got)
		}
		if want.Seq > 3 {
			if got := after.next(t); got.Seq != want.Seq {
				t.Errorf("after 3: event %d instead of %d", got.Seq, want.Seq)
			}
		}
	}
	if got := promotions.next(t); got.Release != release.Digest || got.Kind != history.EventPromote {
		t.Errorf("the promotion is %+v", got)
	}
	// Without a number a stream begins with what comes next.
	fresh := listen(t, w, "/api/v1/events")
	second := w.Build(t, registrytest.Build{Version: "1.1.0", Salt: "b"})
	for _, l := range []*listener{fresh, all, after} {
		if got := l.next(t); got.Release != second.Digest || got.Kind != history.EventPublish {
			t.Errorf("what comes next is %+v", got)
		}
	}
}

// What another replica does is seen too: it is not told, it is found in the database.
func TestEventsOfOthers(t *testing.T) {
	t.Parallel()
	w := setup(t)
	l := listen(t, w, "/api/v1/events")
	release := w.Build(t, registrytest.Build{}) // past this handler
	if got := l.next(t); got.Release != release.Digest {
		t.Errorf("the event is %+v", got)
	}
}

func TestStopEndsStreams(t *testing.T) {
	t.Parallel()
	stop := make(chan struct{})
	w := setup(t, func(c *server.Config) { c.Stop = stop })
	l := listen(t, w, "/api/v1/events")
	close(stop)
	select {
	case <-l.closed:
	case <-time.After(20 * time.Second):
		t.Error("the stream goes on")
	}
}

// A stream tells nothing to who would not be let in any more, and ends.
func TestStreamsEndForWhoIsOut(t *testing.T) {
	t.Parallel()
	for name, beat := range map[string]time.Duration{"when something happens": time.Hour, "when nothing happens": 5 * time.Millisecond} {
		var out atomic.Bool
		w := setup(t, func(c *server.Config) {
			c.Heartbeat = beat
			c.StillAdmitted = func(*http.Request) error {
				if out.Load() {
					return registry.Errorf(registry.CodeUnauthenticated, "the token was revoked")
				}
				return nil
			}
		})
		l := listen(t, w, "/api/v1/events")
		w.Build(t, registrytest.Build{})
		l.next(t)
		out.Store(true)
		if beat == time.Hour {
			w.Build(t, registrytest.Build{Version: "1.1.0", Salt: "b"})
		}
		select {
		case <-l.closed:
		case <-time.After(20 * time.Second):
			t.Errorf("%s: the stream goes on", name)
		}
		select {
		case e := <-l.events:
			t.Errorf("%s: it was told of %s %s", name, e.Kind, e.Version)
		default:
		}
	}
}

// A stream on which nothing happens shows that it lives.
func TestHeartbeat(t *testing.T) {
	t.Parallel()
	w := setup(t, func(c *server.Config) { c.Heartbeat = 5 * time.Millisecond })
	s := httptest.NewServer(w.handler)
	t.Cleanup(s.Close)
	response, err := http.Get(s.URL + "/api/v1/events")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	beats := 0
	for lines := bufio.NewScanner(response.Body); beats < 3 && lines.Scan(); {
		if strings.HasPrefix(lines.Text(), ":") {
			beats++
		}
	}
	if beats < 3 {
		t.Errorf("it says %d times that it lives", beats)
	}
}

func TestEventsRefuse(t *testing.T) {
	t.Parallel()
	w := setup(t, func(c *server.Config) { c.Registry = silent{c.Registry} })
	for _, header := range []string{"x", "-1", "1.5"} {
		wantProblem(t, header, w.do("GET", "/api/v1/events", "", "Last-Event-ID", header), http.StatusBadRequest, registry.CodeInvalid)
	}
	beyond := setup(t, stopped)
	beyond.Build(t, registrytest.Build{})
	wantProblem(t, "beyond the end", beyond.do("GET", "/api/v1/events", "", "Last-Event-ID", "1000"), http.StatusBadRequest, registry.CodeInvalid)
	wantProblem(t, "not allowed", w.do("GET", "/api/v1/events", ""), http.StatusForbidden, registry.CodeForbidden)
}

// stopped makes a service that ends every stream as soon as it is open.
func stopped(c *server.Config) {
	stop := make(chan struct{})
	close(stop)
	c.Stop = stop
}

// silent tells nobody of the history.
type silent struct{ api.Interface }

func (silent) History(context.Context, history.HistoryQuery) ([]history.Event, error) {
	return nil, registry.Errorf(registry.CodeForbidden, "no")
}
