package server_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/access"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/registrytest"
	"mlpromote.dev/mlpromote/registry/server"
	"mlpromote.dev/mlpromote/registry/storage"
)

// posting sends JSON with a key, on behalf of somebody.
func (w *world) posting(ctx context.Context, who, key, target, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequestWithContext(storage.WithPrincipal(ctx, may(who, storage.PermissionAdminister)), http.MethodPost, target, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Idempotency-Key", key)
	recorder := httptest.NewRecorder()
	w.handler.ServeHTTP(recorder, r)
	return recorder
}

// may is a principal with permissions for everything.
func may(who string, permissions ...storage.Permission) storage.Principal {
	return storage.Principal{Name: who, Grants: []storage.Grant{{Permissions: permissions, Environment: "**", Model: "**"}}}
}

// counting counts promotions, and lets a test stand in their way.
type counting struct {
	api.Interface
	mu     sync.Mutex
	n      int
	before func() error
}

func (c *counting) Promote(ctx context.Context, r api.PromoteRequest) (api.Promotion, error) {
	c.mu.Lock()
	c.n++
	before := c.before
	c.mu.Unlock()
	if before != nil {
		if err := before(); err != nil {
			return api.Promotion{}, err
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
	// A refusal is not kept: the same request is decided again, and another may use the key.
	for _, to := range []string{"moon", "moon", "mars"} {
		refused := w.posting(t.Context(), "ci", "k3", path, `{"to":"`+to+`"}`)
		if wantProblem(t, "refused", refused, http.StatusNotFound, registry.CodeNotFound); refused.Header().Get("Idempotency-Replayed") != "" {
			t.Errorf("to %s: repeated: %s", to, refused.Body)
		}
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
	wantProblem(t, "with other grants", w.posting(t.Context(), "ci", "k", path, body), http.StatusForbidden, registry.CodeForbidden)
	c.before = nil
	r := httptest.NewRequestWithContext(storage.WithPrincipal(t.Context(), may("ci", storage.PermissionPromote)), http.MethodPost, path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Idempotency-Key", "k")
	got := httptest.NewRecorder()
	w.handler.ServeHTTP(got, r)
	if got.Code != http.StatusOK || got.Header().Get("Idempotency-Replayed") != "" {
		t.Errorf("with a grant, after a refusal of another with the name: %d %v %s, want 200 of its own", got.Code, got.Header(), got.Body)
	}
	c.before = func() error { return registry.Errorf(registry.CodeForbidden, "it may not promote") }
	wantProblem(t, "with other grants, after the other", w.posting(t.Context(), "ci", "k", path, body), http.StatusForbidden, registry.CodeForbidden)
}

// keys counts the claims and answers that are stored.
type keys struct {
	storage.Idempotency
	claimed, saved int
}

func (k *keys) ClaimKey(ctx context.Context, c storage.KeyClaim) (*storage.KeptAnswer, error) {
	k.claimed++
	return k.Idempotency.ClaimKey(ctx, c)
}

func (k *keys) SaveAnswer(ctx context.Context, c storage.KeyClaim, a storage.KeptAnswer) error {
	k.saved++
	return k.Idempotency.SaveAnswer(ctx, c, a)
}

// Nothing is stored for a caller who may not do what it asks for, whatever its key, and nothing of a refusal.
func TestKeysCostAPermission(t *testing.T) {
	t.Parallel()
	k := new(keys)
	w := setup(t, func(c *server.Config) {
		k.Idempotency, c.Idempotency = c.Idempotency, k
		c.Registry = access.Guard(c.Registry)
	})
	w.Prove(t, w.Build(t, registrytest.Build{}))
	for name, c := range map[string]struct {
		path, body     string
		by             storage.Principal
		status         int
		claimed, saved int
	}{
		"a reader promotes":       {model + "promotions", `{"to":"prod"}`, may("reader", storage.PermissionRead), 403, 0, 0},
		"a reader attaches":       {model + "evidence", `{"environment":"prod"}`, may("reader", storage.PermissionRead), 422, 0, 0},
		"a reader attaches a lot": {model + "evidence", strings.Repeat(" ", 1<<20), may("reader", storage.PermissionRead), 403, 0, 0},
		"an approver attaches":    {model + "evidence", `{"environment":"prod"}`, may("approver", storage.PermissionApprove), 422, 1, 0},
		"a promoter is refused":   {model + "promotions", `{"to":"moon"}`, may("promoter", storage.PermissionPromote), 404, 1, 0},
		"a promoter promotes":     {model + "promotions", `{"to":"prod"}`, may("promoter", storage.PermissionPromote), 200, 1, 1},
	} {
		*k = keys{Idempotency: k.Idempotency}
		r := httptest.NewRequestWithContext(storage.WithPrincipal(t.Context(), c.by), http.MethodPost, c.path, strings.NewReader(c.body))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Idempotency-Key", name[:1]+name[len(name)-1:])
		got := httptest.NewRecorder()
		w.handler.ServeHTTP(got, r)
		if got.Code != c.status || k.claimed != c.claimed || k.saved != c.saved {
			t.Errorf("%s: status %d, %d keys claimed, %d answers kept: want %d, %d, %d: %s", name, got.Code, k.claimed, k.saved, c.status, c.claimed, c.saved, got.Body)
		}
	}
}

// Of many answers, the newest of each caller are kept.
func TestKeysAreBounded(t *testing.T) {
	t.Parallel()
	w := setup(t)
	hook := func(n int) *httptest.ResponseRecorder {
		return w.posting(t.Context(), "ci", fmt.Sprint("k", n), "/api/v1/webhooks", `{"url":"https://example.com"}`)
	}
	for n := range storage.MaxKeptAnswers + 1 {
		hook(n)
	}
	for n, want := range map[int]string{storage.MaxKeptAnswers: "true", 0: ""} {
		if got := hook(n).Header().Get("Idempotency-Replayed"); got != want {
			t.Errorf("answer %d: replayed is %q, want %q", n, got, want)
		}
	}
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
			r = r.WithContext(storage.WithPrincipal(r.Context(), storage.Principal{Name: who}))
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
