package authn_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/access"
	"mlpromote.dev/mlpromote/registry/access/authn"
	"mlpromote.dev/mlpromote/registry/mem"
	"mlpromote.dev/mlpromote/registry/storage"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// world is an authenticator before a handler that answers with the principal it was given.
type world struct {
	*authn.Authenticator
	db    *mem.DB
	log   bytes.Buffer
	now   atomic.Pointer[time.Time]
	text  string // of a token that may read everywhere and push vision in staging
	id    string // of that token
	inner http.Handler
}

func setup(t testing.TB, edits ...func(c *authn.Config)) *world {
	t.Helper()
	w := &world{db: mem.New()}
	w.at(noon)
	c := authn.Config{
		Tokens: w.db, Secrets: w.db, Now: func() time.Time { return *w.now.Load() },
		Logger: slog.New(slog.NewTextHandler(&w.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	for _, edit := range edits {
		edit(&c)
	}
	var err error
	if w.Authenticator, err = authn.New(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	w.id, w.text = w.mint(t, "ci", noon.Add(time.Hour),
		storage.Grant{Permissions: []storage.Permission{storage.PermissionRead}, Environment: "**", Model: "**"},
		storage.Grant{Permissions: []storage.Permission{storage.PermissionPush}, Environment: "staging", Model: "vision/*"})
	w.inner = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p, ok := storage.PrincipalOf(r.Context())
		if err := access.Allow(r.Context(), storage.PermissionRead, "prod", "x"); !ok && err == nil {
			t.Error("nobody is allowed to read")
		}
		_ = json.NewEncoder(w).Encode(p)
	})
	return w
}

func (w *world) at(now time.Time) { w.now.Store(&now) }

func (w *world) mint(t testing.TB, name string, expires time.Time, grants ...storage.Grant) (id, text string) {
	t.Helper()
	token, text, err := access.Mint(name, grants, noon, expires)
	if err == nil {
		err = w.db.CreateToken(t.Context(), token)
	}
	if err != nil {
		t.Fatal(err)
	}
	return token.ID, text
}

// get sends a request with an Authorization header, or without one if it is empty.
func get(h http.Handler, path, authorization string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, path, nil)
	if authorization != "" {
		r.Header.Set("Authorization", authorization)
	}
	recorder := httptest.NewRecorder()
	h.ServeHTTP(recorder, r)
	return recorder
}

func decode[T any](t testing.TB, recorder *httptest.ResponseRecorder) T {
	t.Helper()
	var v T
	if err := json.Unmarshal(recorder.Body.Bytes(), &v); err != nil {
		t.Fatalf("%d %s: %v", recorder.Code, recorder.Body, err)
	}
	return v
}

func basic(user, password string) string {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.SetBasicAuth(user, password)
	return r.Header.Get("Authorization")
}

func TestLetsIn(t *testing.T) {
	t.Parallel()
	w := setup(t)
	for name, authorization := range map[string]string{
		"bearer": "Bearer " + w.text, "another case": "bearer  " + w.text + " ",
		"password of any user": basic("whoever", w.text), "password of no user": basic("", w.text),
		"docker login": basic("<token>", w.text), "a colon in the user is none": basic("a", w.text),
	} {
		for what, h := range map[string]http.Handler{"API": w.API(w.inner), "registry": w.Registry(w.inner)} {
			got := get(h, "/v2/", authorization)
			if p := decode[storage.Principal](t, got); got.Code != http.StatusOK || p.Name != "token:ci" || len(p.Grants) != 2 {
				t.Errorf("%s, %s: %d %+v", name, what, got.Code, p)
			}
		}
	}
}

// refused are headers that let nobody in, and what is said of them.
func (w *world) refused(t testing.TB) map[string]struct{ authorization, says string } {
	id, revoked := w.mint(t, "gone", noon.Add(time.Hour), storage.Grant{Permissions: storage.Permissions(), Environment: "**", Model: "**"})
	if err := w.db.RevokeToken(t.Context(), id, noon); err != nil {
		t.Fatal(err)
	}
	_, expired := w.mint(t, "old", noon.Add(time.Second), storage.Grant{Permissions: storage.Permissions(), Environment: "**", Model: "**"})
	return map[string]struct{ authorization, says string }{
		"nothing":             {"", "none was sent"},
		"unknown":             {"Bearer mlp_aaaaaaaaaaaaaaaa_" + strings.Repeat("a", 52), "did not issue the token"},
		"revoked":             {"Bearer " + revoked, "token gone was revoked"},
		"expired":             {"Bearer " + expired, "token old expired"},
		"revoked as password": {basic("u", revoked), "token gone was revoked"},
		"user for password":   {basic(w.text, "x"), "not a token"},
		"no password":         {basic(w.text, ""), "without a password"},
		"no colon":            {"Basic " + w.text, "without a password"},
		"only the scheme":     {"Bearer", "neither Bearer"},
		"no scheme":           {w.text, "neither Bearer"},
		"another scheme":      {"Digest " + w.text, "neither Bearer"},
		"two tokens":          {"Bearer " + w.text + " " + w.text, "did not issue the token"},
		"a list":              {"Bearer " + w.text + ", Bearer " + w.text, "did not issue the token"},
		"huge":                {"Bearer " + strings.Repeat("a", 20<<10), "at most"},
		"a JWT of nobody":     {"Bearer eyJhbGciOiJub25lIn0.eyJpc3MiOiJtbHByb21vdGUifQ.", "trusts no other token issuer"},
		"rubbish":             {"Bearer rubbish", "not a token"},
	}
}

func TestKeepsOut(t *testing.T) {
	t.Parallel()
	w := setup(t)
	refused := w.refused(t)
	w.at(noon.Add(time.Minute))
	for name, c := range refused {
		got := get(w.API(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Errorf("%s got through", name) })), "/api/v1/heads", c.authorization)
		problem := decode[struct {
			Status int
			Code   registry.Code
			Detail string

			RequestID string
		}](t, got)
		if id := got.Header().Get("X-Request-Id"); id == "" || problem.RequestID != id {
			t.Errorf("%s: request %q is called %q in the problem", name, id, problem.RequestID)
		}
		if got.Code != http.StatusUnauthorized || problem.Status != got.Code ||
			problem.Code != registry.CodeUnauthenticated || !strings.Contains(problem.Detail, c.says) ||
			got.Header().Get("Content-Type") != "application/problem+json" || got.Header().Get("WWW-Authenticate") != `Bearer realm="mlpromote"` {
			t.Errorf("%s: %d %v %s, want %q", name, got.Code, got.Header(), got.Body, c.says)
		}
		// The registry's handler is asked for its form of a refusal, and knows the reason.
		reached := false
		get(w.Registry(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			reached = true
			err := access.Allow(r.Context(), storage.PermissionRead, "prod", "x")
			if _, known := storage.PrincipalOf(r.Context()); known ||
				registry.CodeOf(err) != registry.CodeUnauthenticated || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s: error %v, want %q", name, err, c.says)
			}
		})), "/v2/", c.authorization)
		if !reached {
			t.Errorf("%s: the handler was not asked", name)
		}
	}
	twice := httptest.NewRequest(http.MethodGet, "/api/v1/heads", nil)
	twice.Header["Authorization"] = []string{"Bearer " + w.text, "Bearer " + w.text}
	recorder := httptest.NewRecorder()
	if w.API(w.inner).ServeHTTP(recorder, twice); recorder.Code != http.StatusUnauthorized {
		t.Errorf("two headers: %d", recorder.Code)
	}
	if strings.Contains(w.log.String(), w.text[len(w.text)-20:]) {
		t.Errorf("the log has the token:\n%s", w.log.String())
	}
}

// unavailable is a database that does not answer.
type unavailable struct{ storage.Tokens }

func (unavailable) FindToken(context.Context, string) (storage.Token, error) {
	return storage.Token{}, registry.Errorf(registry.CodeUnavailable, "database /srv/secret is locked")
}

// broken is one that is damaged.
type broken struct{ storage.Tokens }

func (broken) FindToken(context.Context, string) (storage.Token, error) {
	return storage.Token{}, registry.Errorf(registry.CodeInternal, "database /srv/secret is damaged")
}

// What could not be found out is no fault of the caller's, and lets him in no more.
func TestDatabaseFails(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		tokens storage.Tokens
		status int
	}{{unavailable{}, http.StatusServiceUnavailable}, {broken{}, http.StatusInternalServerError}} {
		w := setup(t, func(config *authn.Config) { config.Tokens = c.tokens })
		got := get(w.API(w.inner), "/api/v1/heads", "Bearer "+w.text)
		if got.Code != c.status || got.Header().Get("WWW-Authenticate") != "" {
			t.Errorf("%d %s, want %d", got.Code, got.Body, c.status)
		}
		token := get(w.Registry(w.inner), authn.TokenPath, "Bearer "+w.text)
		if token.Code != c.status || strings.Contains(token.Body.String(), "/srv/secret") {
			t.Errorf("%d %s, want %d", token.Code, token.Body, c.status)
		}
		if c.status == http.StatusInternalServerError && strings.Contains(got.Body.String(), "/srv/secret") ||
			!strings.Contains(w.log.String(), "/srv/secret") {
			t.Errorf("the caller sees %s, the log has %s", got.Body, w.log.String())
		}
	}
}

// A JWT of somebody else is for Config.Identify, however it is sent.
func TestIssuers(t *testing.T) {
	t.Parallel()
	const foreign = "eyJhbGciOiJSUzI1NiJ9.e30.c2ln"
	w := setup(t, func(c *authn.Config) {
		c.Identify = func(_ context.Context, jwt string) (storage.Principal, error) {
			if jwt != foreign {
				return storage.Principal{}, registry.Errorf(registry.CodeUnauthenticated, "another")
			}
			return storage.Principal{Name: "ci:x",
				Grants: []storage.Grant{{Permissions: []storage.Permission{storage.PermissionRead}, Environment: "**", Model: "**"}}}, nil
		}
	})
	for _, authorization := range []string{"Bearer " + foreign, basic("ci", foreign)} {
		if got := get(w.API(w.inner), "/api/v1/heads", authorization); got.Code != http.StatusOK || decode[storage.Principal](t, got).Name != "ci:x" {
			t.Errorf("%d %s", got.Code, got.Body)
		}
	}
	if got := get(w.API(w.inner), "/api/v1/heads", "Bearer "+foreign+"x"); got.Code != http.StatusUnauthorized {
		t.Errorf("%d %s", got.Code, got.Body)
	}
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	db := mem.New()
	for name, c := range map[string]authn.Config{
		"no tokens": {Secrets: db}, "no secrets": {Tokens: db}, "a path": {Tokens: db, Secrets: db, URL: "https://example.com/x"},
		"no scheme": {Tokens: db, Secrets: db, URL: "example.com"}, "a user": {Tokens: db, Secrets: db, URL: "https://u@example.com"},
	} {
		if _, err := authn.New(t.Context(), c); registry.CodeOf(err) != registry.CodeInvalid {
			t.Errorf("%s: error %v, want CodeInvalid", name, err)
		}
	}
	if _, err := db.Secret(t.Context(), "oci-token-key", []byte("short")); err != nil {
		t.Fatal(err)
	}
	if _, err := authn.New(t.Context(), authn.Config{Tokens: db, Secrets: db}); registry.CodeOf(err) != registry.CodeInternal {
		t.Errorf("a short key: error %v, want CodeInternal", err)
	}
}

// Whatever the header says, only the token that there is lets anybody in.
func FuzzAuthorization(f *testing.F) {
	w := setup(f)
	for _, c := range w.refused(f) {
		f.Add(c.authorization)
	}
	w.at(noon.Add(time.Minute))
	f.Add("Bearer " + w.text)
	f.Add(basic("x", w.text))
	answer := get(w.Registry(w.inner), authn.TokenPath+"?scope=repository:staging/vision/digits:pull", "Bearer "+w.text)
	derived := decode[struct{ Token string }](f, answer).Token
	f.Add("Bearer " + derived)
	f.Fuzz(func(t *testing.T, authorization string) {
		got := get(w.API(w.inner), "/api/v1/heads", authorization)
		switch {
		case got.Code == http.StatusUnauthorized:
		case got.Code == http.StatusOK && decode[storage.Principal](t, got).Name == "token:ci" && holds(authorization, w.text, derived):
		default:
			t.Fatalf("%q: %d %s", authorization, got.Code, got.Body)
		}
	})
}

// holds reports whether a header has one of the secrets, as it is or as a password. The
// last character of a signature has bits that say nothing.
func holds(authorization string, secrets ...string) bool {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.Header.Set("Authorization", authorization)
	_, password, _ := r.BasicAuth()
	for _, secret := range secrets {
		if signed := secret[:len(secret)-1]; strings.Contains(password, signed) || strings.Contains(authorization, signed) {
			return true
		}
	}
	return false
}
