package authn_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/access"
	"mlpromote.dev/mlpromote/registry/access/authn"
	"mlpromote.dev/mlpromote/registry/mem"
	"mlpromote.dev/mlpromote/registry/storage"
)

// Open access admits everybody. Once there is a token, it requires one.
func TestOpenGateCloses(t *testing.T) {
	t.Parallel()
	tokens := mem.New()
	w := setup(t, func(c *authn.Config) {
		c.Tokens, c.Open = tokens, access.NewOpen(tokens, func() bool { return false })
	})
	w.db = tokens
	handlers := map[string]http.Handler{"API": w.API(w.inner), "registry": w.Registry(w.inner)}
	for what, h := range handlers {
		for _, authorization := range []string{"", "Bearer rubbish"} { // a client may have a credential for another service
			got := get(h, "/v2/", authorization)
			if p := decode[storage.Principal](t, got); got.Code != http.StatusOK ||
				p.Name != "anonymous" || !p.May(storage.PermissionAdminister, "prod", "x") {
				t.Errorf("%s, open to %q: got %d %+v, want anonymous", what, authorization, got.Code, p)
			}
		}
	}
	// It issues no token that would still be good after it has closed.
	if _, got := w.ask(t, "", "repository:staging/x:push"); got.Code != http.StatusUnauthorized {
		t.Errorf("%s with open access: got %d %s, want 401", authn.TokenPath, got.Code, got.Body)
	}

	_, text := w.mint(t, "first", noon.Add(time.Hour),
		storage.Grant{Permissions: []storage.Permission{storage.PermissionRead}, Environment: "**", Model: "**"})
	if got := get(handlers["API"], "/api/v1/heads", ""); got.Code != http.StatusUnauthorized {
		t.Errorf("API with a first token: got %d %s, want 401", got.Code, got.Body)
	}
	get(w.Registry(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if err := access.Allow(r.Context(), storage.PermissionRead, "prod", "x"); registry.CodeOf(err) != registry.CodeUnauthenticated {
			t.Errorf("registry with a first token: error %v, want CodeUnauthenticated", err)
		}
	})), "/v2/", "")
	for what, h := range handlers {
		if p := decode[storage.Principal](t, get(h, "/v2/", "Bearer "+text)); p.Name != "token:first" {
			t.Errorf("%s with the first token: got %+v", what, p)
		}
	}
	if n := strings.Count(w.log.String(), "from now on every caller needs a token"); n != 1 {
		t.Errorf("the log has %d lines that it closed, want 1: %s", n, w.log.String())
	}
}

// unreachable is a database that does not answer.
type unreachable struct{ storage.Tokens }

func (unreachable) ListTokens(context.Context) ([]storage.Token, error) {
	return nil, registry.Errorf(registry.CodeUnavailable, "database /srv/secret is locked")
}

func TestOpenGateWithoutDatabase(t *testing.T) {
	t.Parallel()
	w := setup(t, func(c *authn.Config) { c.Open = access.NewOpen(unreachable{}, func() bool { return false }) })
	if got := get(w.API(w.inner), "/api/v1/heads", ""); got.Code != http.StatusServiceUnavailable {
		t.Errorf("got %d %s, want 503", got.Code, got.Body)
	}
}

// A request that was let in is asked about again while its answer lasts.
func TestStillAdmitted(t *testing.T) {
	t.Parallel()
	read := storage.Grant{Permissions: []storage.Permission{storage.PermissionRead}, Environment: "**", Model: "**"}
	for name, c := range map[string]struct {
		known  bool // the token of the request is there when it is let in; else access is open
		send   bool // the request has it
		change func(t *testing.T, w *world, token storage.Token) error
		want   registry.Code
	}{
		"nothing happens": {true, true, func(*testing.T, *world, storage.Token) error { return nil }, ""},
		"its token is revoked": {true, true, func(t *testing.T, w *world, token storage.Token) error {
			return w.db.RevokeToken(t.Context(), token.ID, noon)
		}, registry.CodeUnauthenticated},
		"its token runs out": {true, true, func(_ *testing.T, w *world, _ storage.Token) error {
			w.at(noon.Add(2 * time.Hour))
			return nil
		}, registry.CodeUnauthenticated},
		"open access ends": {false, false, func(t *testing.T, w *world, token storage.Token) error {
			return w.db.CreateToken(t.Context(), token)
		}, registry.CodeUnauthenticated},
		"open access ends, and its token may less than everybody could": {false, true, func(t *testing.T, w *world, token storage.Token) error {
			return w.db.CreateToken(t.Context(), token)
		}, registry.CodeUnauthenticated},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tokens := mem.New()
			w := setup(t, func(c *authn.Config) {
				c.Tokens, c.Open = tokens, access.NewOpen(tokens, func() bool { return false })
			})
			w.db = tokens
			token, text, err := access.Mint("first", []storage.Grant{read}, noon, noon.Add(time.Hour))
			if err == nil && c.known {
				err = tokens.CreateToken(t.Context(), token)
			}
			if err != nil {
				t.Fatal(err)
			}
			authorization := ""
			if c.send {
				authorization = "Bearer " + text
			}
			admitted := false
			get(w.API(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				admitted = true
				if err := w.StillAdmitted(r); err != nil {
					t.Errorf("before anything changed: error %v", err)
				}
				if err := c.change(t, w, token); err != nil {
					t.Fatal(err)
				}
				if err := w.StillAdmitted(r); (err != nil || c.want != "") && registry.CodeOf(err) != c.want {
					t.Errorf("after the change: error %v, want code %q", err, c.want)
				}
			})), "/api/v1/events", authorization)
			if !admitted {
				t.Error("the request was not let in at first")
			}
		})
	}
}
