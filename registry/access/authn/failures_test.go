package authn_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/access/authn"
	"mlpromote.dev/mlpromote/registry/mem"
	"mlpromote.dev/mlpromote/registry/storage"
)

// from sends a credential from an address.
func from(h http.Handler, address, path, authorization string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, path, nil)
	r.RemoteAddr = address
	if authorization != "" {
		r.Header.Set("Authorization", authorization)
	}
	recorder := httptest.NewRecorder()
	h.ServeHTTP(recorder, r)
	return recorder
}

// Who guesses has to wait, wherever he does it, also when he guesses right. Those who share
// his address and were let in before go on, and so do all others.
func TestGuessesWait(t *testing.T) {
	t.Parallel()
	const guesser, wrong = "192.0.2.1:1000", "Bearer mlp_aaaaaaaaaaaaaaaa_x"
	paths := map[string]func(w *world) http.Handler{
		"/api/v1/heads": func(w *world) http.Handler { return w.API(w.inner) },
		"/v2/":          func(w *world) http.Handler { return w.Registry(w.inner) },
		authn.TokenPath: func(w *world) http.Handler { return w.Registry(w.inner) },
	}
	for guessed, door := range paths {
		t.Run(guessed, func(t *testing.T) {
			t.Parallel()
			w := setup(t, func(c *authn.Config) { c.Failures = authn.Rate{PerSecond: 0.1, Burst: 5} })
			_, right := w.mint(t, "right", noon.Add(time.Hour), storage.Grant{Permissions: storage.Permissions(), Environment: "**", Model: "**"})
			api := w.API(w.inner)
			if got := from(api, guesser, "/api/v1/heads", "Bearer "+w.text); got.Code != http.StatusOK {
				t.Fatal(got.Code)
			}
			for range 20 { // to say nothing is how OCI clients begin
				from(door(w), guesser, guessed, "")
			}
			inner := w.inner
			w.inner = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) })
			for n := range 5 {
				if got := from(door(w), guesser, guessed, wrong); got.Code != http.StatusUnauthorized {
					t.Fatalf("guess %d: %d", n, got.Code)
				}
			}
			w.inner = inner
			for path, door := range paths {
				for what, authorization := range map[string]string{"wrong": wrong, "right": "Bearer " + right} {
					got := from(door(w), "192.0.2.1:2000", path, authorization)
					if got.Code != http.StatusTooManyRequests || got.Header().Get("Retry-After") != "10" ||
						!strings.Contains(got.Body.String(), "wait and try again") {
						t.Errorf("%s at %s: %d %v %s", what, path, got.Code, got.Header(), got.Body)
					}
				}
			}
			for what, c := range map[string]struct{ address, authorization string }{
				"known there": {guesser, "Bearer " + w.text}, "elsewhere": {"192.0.2.2:1000", "Bearer " + right},
			} {
				if got := from(api, c.address, "/api/v1/heads", c.authorization); got.Code != http.StatusOK {
					t.Errorf("%s: %d", what, got.Code)
				}
			}
			w.at(noon.Add(10 * time.Second))
			if got := from(api, guesser, "/api/v1/heads", wrong); got.Code != http.StatusUnauthorized {
				t.Errorf("after the wait: %d", got.Code)
			}
			if got := from(api, guesser, "/api/v1/heads", wrong); got.Code != http.StatusTooManyRequests {
				t.Errorf("after one more: %d", got.Code)
			}
		})
	}
}

// A database that does not answer makes nobody a guesser.
func TestFaultsAreNoGuesses(t *testing.T) {
	t.Parallel()
	w := setup(t, func(c *authn.Config) {
		c.Tokens, c.Failures = unavailable{c.Tokens}, authn.Rate{PerSecond: 0.1, Burst: 1}
	})
	for range 3 {
		if got := get(w.API(w.inner), "/api/v1/heads", "Bearer "+w.text); got.Code != http.StatusServiceUnavailable {
			t.Errorf("%d", got.Code)
		}
	}
}

// counting counts what is written.
type counting struct {
	storage.Tokens
	written atomic.Int64
	fails   bool
}

func (c *counting) UseToken(ctx context.Context, id string, at time.Time) error {
	c.written.Add(1)
	if c.fails {
		return registry.Errorf(registry.CodeUnavailable, "database is locked")
	}
	return c.Tokens.UseToken(ctx, id, at)
}

// The use of a token is known to the hour, and costs a write in an hour, however many ask,
// by itself and by tokens that OCI clients got for it.
func TestLastUse(t *testing.T) {
	t.Parallel()
	var tokens *counting
	w := setup(t, func(c *authn.Config) {
		tokens = &counting{Tokens: c.Tokens}
		c.Tokens = tokens
	})
	id, text := w.mint(t, "used", noon.Add(24*time.Hour), storage.Grant{Permissions: storage.Permissions(), Environment: "**", Model: "**"})
	used := func(want time.Time, writes int64) {
		t.Helper()
		token, err := w.db.FindToken(t.Context(), id)
		if err != nil || !token.LastUsed.Equal(want) || tokens.written.Load() != writes {
			t.Errorf("last used %v, %d writes (%v), want %v, %d", token.LastUsed, tokens.written.Load(), err, want, writes)
		}
	}
	get(w.API(w.inner), "/", "Bearer mlp_"+id+"_wrong")
	used(time.Time{}, 0)
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() { get(w.API(w.inner), "/", "Bearer "+text) })
	}
	all.Wait()
	used(noon, 1)
	w.at(noon.Add(59 * time.Minute))
	derived, _ := w.ask(t, "Bearer "+text)
	used(noon, 1)
	later := noon.Add(time.Hour)
	w.at(later)
	get(w.Registry(w.inner), "/v2/", "Bearer "+derived)
	used(later, 2)
	get(w.API(w.inner), "/", "Bearer "+text)
	used(later, 2)
}

// Where the use cannot be noted, the bearer is let in all the same.
func TestLastUseFails(t *testing.T) {
	t.Parallel()
	w := setup(t, func(c *authn.Config) { c.Tokens = &counting{Tokens: c.Tokens.(*mem.DB), fails: true} })
	if got := get(w.API(w.inner), "/api/v1/heads", "Bearer "+w.text); got.Code != http.StatusOK ||
		!strings.Contains(w.log.String(), "recording the use of a token failed") {
		t.Errorf("%d, log:\n%s", got.Code, w.log.String())
	}
}
