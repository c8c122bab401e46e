package server_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/registrytest"
	"mlpromote.dev/mlpromote/registry/server"
	"mlpromote.dev/mlpromote/registry/service"
)

const nodeQuery = "environment=prod&arch=amd64&level=v3&runtime=onnxruntime:1.30.0"

// gated is a registry that refuses to resolve, as one whose configuration is not the agreed one.
type gated struct {
	registry.Interface
	closed atomic.Bool
}

func (g *gated) Resolve(ctx context.Context, q registry.ResolveQuery) (registry.Resolution, error) {
	if g.closed.Load() {
		return registry.Resolution{}, registry.Errorf(registry.CodeUnavailable, "the configuration differs")
	}
	return g.Interface.Resolve(ctx, q)
}

// remembering is a world whose service and API remember what they can.
func remembering(t *testing.T) (*world, *gated) {
	t.Helper()
	gate := new(gated)
	w := setup(t, func(c *server.Config) {
		gate.Interface = c.Registry
		c.Registry = gate
	})
	gate.Interface = service.Remember(w.Interface.(*service.Service), w.db, 1<<20)
	return w, gate
}

// sameAnswer wants the answer of an API that remembers to be that of one that was just made.
func (w *world) sameAnswer(t *testing.T, after string) *httptest.ResponseRecorder {
	t.Helper()
	c := w.config
	c.Registry = w.Interface
	fresh, err := server.New(c)
	if err != nil {
		t.Fatal(err)
	}
	var got *httptest.ResponseRecorder
	for _, coding := range []string{"identity", "gzip", "identity", "gzip"} {
		got = w.do(http.MethodGet, model+"resolve?"+nodeQuery, "", "Accept-Encoding", coding)
		r := httptest.NewRequest(http.MethodGet, model+"resolve?"+nodeQuery, nil)
		r.Header.Set("Accept-Encoding", coding)
		plain := httptest.NewRecorder()
		fresh.ServeHTTP(plain, r)
		a, b := unpacked(t, got), unpacked(t, plain)
		if got.Code != plain.Code || got.Code == http.StatusOK && !bytes.Equal(a, b) || got.Header().Get("ETag") != plain.Header().Get("ETag") {
			t.Fatalf("after %s, %s: got %d %s %s, want %d %s %s", after, coding,
				got.Code, got.Header().Get("ETag"), a, plain.Code, plain.Header().Get("ETag"), b)
		}
	}
	return got
}

func unpacked(t *testing.T, r *httptest.ResponseRecorder) []byte {
	t.Helper()
	if r.Header().Get("Content-Encoding") != "gzip" {
		return r.Body.Bytes()
	}
	unzip, err := gzip.NewReader(bytes.NewReader(r.Body.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(unzip)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// The very next resolve shows a promotion, a rollback, evidence, a quarantine, and that the
// registry refuses.
func TestResolveShowsEveryChange(t *testing.T) {
	t.Parallel()
	w, gate := remembering(t)
	tags := make(map[string]string) // by what came before
	see := func(after string) *httptest.ResponseRecorder {
		t.Helper()
		got := w.sameAnswer(t, after)
		tag := got.Header().Get("ETag")
		for earlier, was := range tags {
			if tag == was && tag != "" {
				t.Errorf("after %s: the answer is that after %s", after, earlier)
			}
		}
		tags[after] = tag
		return got
	}
	w.Promoted(t, registrytest.Build{})
	see("a promotion")
	w.Promoted(t, registrytest.Build{Version: "1.1.0", Salt: "b"})
	see("another promotion")
	if _, err := w.Rollback(t.Context(), registry.RollbackRequest{Environment: "prod", Model: registrytest.Model, Reason: "x"}); err != nil {
		t.Fatal(err)
	}
	delete(tags, "a promotion") // this is its head
	see("a rollback")
	if err := w.ReleaseHold(t.Context(), "prod", registrytest.Model, "x"); err != nil {
		t.Fatal(err)
	}
	third := w.Promoted(t, registrytest.Build{Version: "1.2.0", Salt: "c"})
	see("a promotion after the rollback")
	fail := registrytest.Report(third, third.Engines[0], registry.VerdictFail)
	fail.FinishedOn = fail.FinishedOn.AddDate(0, 0, 1)
	w.AttachTo(t, "prod", third, third.Engines[0].Digest, registry.PredicateParity, fail)
	see("a report that failed")

	gate.closed.Store(true)
	if got := w.do(http.MethodGet, model+"resolve?"+nodeQuery, ""); got.Code != http.StatusServiceUnavailable {
		t.Errorf("while the registry refuses: status %d, want 503", got.Code)
	}
	gate.closed.Store(false)
	w.AttachTo(t, "prod", third, third.Digest, registry.PredicateQuarantine, struct{}{})
	if got := see("a quarantine"); got.Code != http.StatusNotFound || !strings.Contains(got.Body.String(), "in quarantine") {
		t.Errorf("after a quarantine: %d %s", got.Code, got.Body)
	}
}

// Requests that get the same remembered answer do not write to it.
func TestResolveSharesAnswers(t *testing.T) {
	t.Parallel()
	w, _ := remembering(t)
	w.Promoted(t, registrytest.Build{})
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			coding := []string{"identity", "gzip"}[i%2]
			for range 20 {
				got := w.do(http.MethodGet, model+"resolve?"+nodeQuery, "", "Accept-Encoding", coding)
				if vary := strings.Join(got.Header().Values("Vary"), ", "); got.Code != http.StatusOK || vary != "Accept, Accept-Encoding" {
					t.Errorf("%s: status %d, Vary %q", coding, got.Code, vary)
				}
			}
		})
	}
	wg.Wait()
}
