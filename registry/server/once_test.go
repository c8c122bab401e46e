package server_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/registrytest"
	"mlpromote.dev/mlpromote/registry/server"
)

// posting sends JSON with a key, on behalf of somebody.
func (w *world) posting(ctx context.Context, who, key, target, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequestWithContext(registry.WithPrincipal(ctx, registry.Principal{Name: who}), http.MethodPost, target, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Idempotency-Key", key)
	recorder := httptest.NewRecorder()
	w.handler.ServeHTTP(recorder, r)
	return recorder
}

// counting counts promotions, and lets a test stand in their way.
type counting struct {
	registry.Interface
	mu     sync.Mutex
	n      int
	before func() error
}

func (c *counting) Promote(ctx context.Context, r registry.PromoteRequest) (registry.Promotion, error) {
	c.mu.Lock()
	c.n++
	before := c.before
	c.mu.Unlock()
	if before != nil {
		if err := before(); err != nil {
			return registry.Promotion{}, err
		}
	}
	return c.Interface.Promote(ctx, r)
}

func counted(t *testing.T) (*world, *counting) {
	t.Helper()
	c := new(counting)
	w := setup(t, func(config *server.Config) {
		c.Interface = config.Registry
		config.Registry = c
	})
	w.Prove(t, w.Build(t, registrytest.Build{}))
	return w, c
}

func TestSameKeySameAnswer(t *testing.T) {
	t.Parallel()
	w, c := counted(t)
	const path = model + "promotions"
	first := w.posting(t.Context(), "ci", "k1", path, `{"to":"prod"}`)
	if first.Code != http.StatusOK || first.Header().Get("Idempotency-Replayed") != "" {
		t.Fatalf("%d %v %s", first.Code, first.Header(), first.Body)
	}
	for _, key := range []string{"k1", `"k1"`} {
		again := w.posting(t.Context(), "ci", key, path, `{"to":"prod"}`)
		if again.Code != first.Code || again.Body.String() != first.Body.String() ||
			again.Header().Get("Content-Type") != "application/json" || again.Header().Get("Idempotency-Replayed") != "true" {
			t.Errorf("again: %d %v %s", again.Code, again.Header(), again.Body)
		}
	}
	if c.n != 1 {
		t.Errorf("promoted %d times", c.n)
	}
	wantProblem(t, "another body", w.posting(t.Context(), "ci", "k1", path, `{"to":"prod" }`), http.StatusUnprocessableEntity, registry.CodeInvalid)
	wantProblem(t, "another path", w.posting(t.Context(), "ci", "k1", model+"rollbacks", `{"to":"prod"}`), http.StatusUnprocessableEntity, registry.CodeInvalid)
	for _, other := range []*httptest.ResponseRecorder{w.posting(t.Context(), "somebody", "k1", path, `{"to":"prod"}`), w.posting(t.Context(), "ci", "k2", path, `{"to":"prod"}`)} {
		if !strings.Contains(other.Body.String(), `"unchanged":true`) {
			t.Errorf("for another key: %s", other.Body)
		}
	}
	// A refusal is an answer, with its decision.
	refused := w.posting(t.Context(), "ci", "k3", path, `{"to":"moon"}`)
	again := w.posting(t.Context(), "ci", "k3", path, `{"to":"moon"}`)
	if wantProblem(t, "refused", refused, http.StatusNotFound, registry.CodeNotFound); again.Body.String() != refused.Body.String() ||
		again.Header().Get("Content-Type") != "application/problem+json" {
		t.Errorf("again: %s, was %s", again.Body, refused.Body)
	}
	for _, key := range []string{"", " ", `"`, `"x`, "a b", "ü", strings.Repeat("x", 256)} {
		wantProblem(t, "key "+key, w.posting(t.Context(), "ci", key, path, `{}`), http.StatusBadRequest, registry.CodeInvalid)
	}
}

// Of two with one name, as an issuer may give it, the one who may do less has no refusal kept
// for the other, and is not told what the other was answered.
func TestKeysOfOneName(t *testing.T) {
	t.Parallel()
	w, c := counted(t)
	const path, body = model + "promotions", `{"to":"prod"}`
	c.before = func() error { return registry.Errorf(registry.CodeForbidden, "it may not promote") }
	wantProblem(t, "without grants", w.posting(t.Context(), "ci", "k", path, body), http.StatusForbidden, registry.CodeForbidden)
	c.before = nil
	r := httptest.NewRequestWithContext(registry.WithPrincipal(t.Context(), registry.Principal{Name: "ci", Grants: []registry.Grant{
		{Permissions: []registry.Permission{registry.PermissionPromote}, Environment: "prod", Model: "**"},
	}}), http.MethodPost, path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Idempotency-Key", "k")
	got := httptest.NewRecorder()
	w.handler.ServeHTTP(got, r)
	if got.Code != http.StatusOK || got.Header().Get("Idempotency-Replayed") != "" {
		t.Errorf("with a grant, after a refusal of another with the name: %d %v %s, want 200 of its own", got.Code, got.Header(), got.Body)
	}
	wantProblem(t, "without grants, after the other", w.posting(t.Context(), "ci", "k", path, body), http.StatusForbidden, registry.CodeForbidden)
}

// A webhook that is registered again with its key is not another one, and its secret is told.
func TestWebhooksAreRegisteredOnce(t *testing.T) {
	t.Parallel()
	w := setup(t)
	first := w.posting(t.Context(), "ci", "k", "/api/v1/webhooks", `{"url":"https://example.com"}`)
	again := w.posting(t.Context(), "ci", "k", "/api/v1/webhooks", `{"url":"https://example.com"}`)
	if first.Code != http.StatusCreated || again.Code != first.Code ||
		again.Body.String() != first.Body.String() || again.Header().Get("Idempotency-Replayed") != "true" {
		t.Errorf("first %d %s, again %d %s", first.Code, first.Body, again.Code, again.Body)
	}
	if at := first.Header().Get("Location"); !strings.HasPrefix(at, "/api/v1/webhooks/") || again.Header().Get("Location") != at {
		t.Errorf("first it is at %q, then at %q", at, again.Header().Get("Location"))
	}
	if all, err := w.config.Webhooks.List(t.Context(), "", 10); err != nil || len(all) != 1 {
		t.Errorf("registered are %d, error %v", len(all), err)
	}
}

// What failed for a reason of the service's is tried again; a request whose client has gone
// is finished, and whoever comes meanwhile is asked to wait.
func TestKeysOfUnfinishedRequests(t *testing.T) {
	t.Parallel()
	w, c := counted(t)
	const path = model + "promotions"
	c.before = func() error { return registry.Errorf(registry.CodeUnavailable, "the database restarts") }
	wantProblem(t, "failed", w.posting(t.Context(), "ci", "k", path, `{}`), http.StatusServiceUnavailable, registry.CodeUnavailable)
	working, finish := make(chan struct{}), make(chan struct{})
	c.before = func() error { close(working); <-finish; return nil }
	ctx, leave := context.WithCancel(t.Context())
	done := make(chan *httptest.ResponseRecorder)
	go func() { done <- w.posting(ctx, "ci", "k", path, `{}`) }()
	<-working
	leave()
	busy := w.posting(t.Context(), "ci", "k", path, `{}`)
	if wantProblem(t, "at work", busy, http.StatusConflict, registry.CodeConflict); busy.Header().Get("Retry-After") == "" {
		t.Errorf("nobody says when to come again: %v", busy.Header())
	}
	close(finish)
	finished := <-done
	if again := w.posting(t.Context(), "ci", "k", path, `{}`); again.Code != http.StatusOK || again.Body.String() != finished.Body.String() || c.n != 2 {
		t.Errorf("%d %s after %d promotions, want %s", again.Code, again.Body, c.n, finished.Body)
	}
}

func TestKeysRunOut(t *testing.T) {
	t.Parallel()
	w, clock := setup(t), registrytest.NewClock()
	w.db.Now = clock.Now
	w.Prove(t, w.Build(t, registrytest.Build{}))
	w.posting(t.Context(), "ci", "k", model+"promotions", `{}`)
	clock.Pass(23 * time.Hour)
	if got := w.posting(t.Context(), "ci", "k", model+"promotions", `{}`); strings.Contains(got.Body.String(), `"unchanged"`) {
		t.Errorf("after 23 hours: %s", got.Body)
	}
	clock.Pass(2 * time.Hour)
	if got := w.posting(t.Context(), "ci", "k", model+"promotions", `{}`); !strings.Contains(got.Body.String(), `"unchanged":true`) {
		t.Errorf("after 25 hours: %s", got.Body)
	}
}

func TestRate(t *testing.T) {
	t.Parallel()
	now := time.Now()
	w := setup(t, func(c *server.Config) {
		c.Now = func() time.Time { return now }
		c.Limiter = server.NewLimiter(server.Rate{PerSecond: 0.5, Burst: 3}, c.Now)
	})
	ask := func(who string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(http.MethodGet, "/api/v1/heads", nil)
		if strings.HasPrefix(who, "token:") {
			r = r.WithContext(registry.WithPrincipal(r.Context(), registry.Principal{Name: who}))
		} else {
			r.RemoteAddr = who
		}
		recorder := httptest.NewRecorder()
		w.handler.ServeHTTP(recorder, r)
		return recorder
	}
	for _, who := range []string{"token:a", "token:b", "192.0.2.1:1000", "[2001:db8::1]:1000"} {
		for range 3 {
			if got := ask(who); got.Code != http.StatusOK {
				t.Fatalf("%s: %d", who, got.Code)
			}
		}
		got := ask(who)
		if wantProblem(t, who, got, http.StatusTooManyRequests, registry.CodeUnavailable); got.Header().Get("Retry-After") != "2" {
			t.Errorf("%s is told to wait %s", who, got.Header().Get("Retry-After"))
		}
	}
	if got := ask("192.0.2.1:2000"); got.Code != http.StatusTooManyRequests {
		t.Errorf("another port of an address: %d", got.Code)
	}
	now = now.Add(2 * time.Second)
	if first, second := ask("token:a"), ask("token:a"); first.Code != http.StatusOK || second.Code != http.StatusTooManyRequests {
		t.Errorf("after the wait: %d and %d", first.Code, second.Code)
	}
}
