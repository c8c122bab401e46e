package host_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/host"
	"mlpromote.dev/mlpromote/registry/storage"
)

// size is that of a large body. The first 64 KiB are free.
const size = 100 << 10

// reader is a service that reads bodies. A request that has read its body waits for end.
type reader struct {
	*httptest.Server
	read chan string // the caller of each request that has read its body
	end  chan struct{}
}

func read(t *testing.T, budget host.BodyBudget) reader {
	t.Helper()
	s := reader{read: make(chan string), end: make(chan struct{})}
	h := budget.Bodies().Limit(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		caller, _ := storage.PrincipalOf(r.Context())
		switch _, err := io.Copy(io.Discard, r.Body); {
		case registry.HasCode(err, registry.CodeUnavailable):
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		case err != nil && !errors.Is(err, io.ErrUnexpectedEOF):
			t.Error(err)
		}
		if strings.HasSuffix(r.URL.Path, "/wait") {
			s.read <- caller.Name
			<-s.end
		}
	}))
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if name, _, ok := r.BasicAuth(); ok {
			r = r.WithContext(storage.WithPrincipal(r.Context(), storage.Principal{Name: name}))
		}
		h.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

// post sends a body on behalf of a caller and returns the status.
func (s reader) post(t *testing.T, caller, path string, body io.Reader) int {
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+path, body)
	if err != nil {
		t.Error(err)
		return 0
	}
	if caller != "" {
		r.SetBasicAuth(caller, "")
	}
	got, err := s.Client().Do(r)
	if err != nil {
		t.Error(err)
		return 0
	}
	_ = got.Body.Close()
	return got.StatusCode
}

func large() io.Reader { return strings.NewReader(strings.Repeat("x", size)) }

// Large bodies share a budget, of which one caller has a part. Who finds no room is told to try again; small
// bodies and blobs need none.
func TestBodiesInFlight(t *testing.T) {
	t.Parallel()
	s := read(t, host.BodyBudget{Bytes: 3 * size, PerCaller: 2 * size, Wait: time.Millisecond})
	done := make(chan int)
	hold := func(caller string) {
		go func() { done <- s.post(t, caller, "/wait", large()) }()
		if got := <-s.read; got != caller {
			t.Errorf("read is a body of %q, want %q", got, caller)
		}
	}
	hold("a")
	hold("a")
	want := func(why string, status, want int) {
		t.Helper()
		if status != want {
			t.Errorf("%s: status %d, want %d", why, status, want)
		}
	}
	want("a third of one caller", s.post(t, "a", "/", large()), 503)
	want("of another", s.post(t, "b", "/", large()), 200)
	want("of an address", s.post(t, "", "/", large()), 200)
	hold("b")
	want("beyond all", s.post(t, "c", "/", large()), 503)
	want("of unknown length", s.post(t, "c", "/", io.MultiReader(large())), 503)
	want("small", s.post(t, "a", "/", strings.NewReader(strings.Repeat("x", 64<<10))), 200)
	want("a blob", s.post(t, "a", "/v2/staging/a/blobs/uploads/x", large()), 200)
	close(s.end)
	for range 3 {
		want("held", <-done, 200)
	}
	want("after them", s.post(t, "c", "/", large()), 200)
	want("of unknown length, alone", s.post(t, "c", "/", io.MultiReader(large())), 200)
}

// A body waits for room that others leave.
func TestBodiesWait(t *testing.T) {
	t.Parallel()
	s := read(t, host.BodyBudget{Bytes: size, Wait: time.Minute})
	done := make(chan int)
	for range 5 {
		go func() { done <- s.post(t, "", "/wait", large()) }()
	}
	for range 5 {
		<-s.read
		select {
		case <-s.read:
			t.Error("two bodies are in flight, and there is room for one")
		default:
		}
		s.end <- struct{}{}
		if status := <-done; status != 200 {
			t.Errorf("status %d, want 200", status)
		}
	}
}
