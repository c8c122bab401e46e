package signin_test

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/access/authn"
	"mlpromote.dev/mlpromote/registry/access/oidc"
	"mlpromote.dev/mlpromote/registry/access/signin"
	"mlpromote.dev/mlpromote/registry/storage"
)

func TestByToken(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	k, text := w.token(t, "jane", time.Time{})
	b := w.browser(t)
	b.seesNothing("/")
	if status, got := b.signInByToken("  " + text + "\n"); status != http.StatusOK || got != "GET jane" {
		t.Fatalf("sign in: got %d %q", status, got)
	}
	b.sees("/", "GET jane")
	b.sees("/api/v1/environments", "GET jane")
	w.browser(t).seesNothing("/")
	if err := w.db.RevokeToken(t.Context(), k.ID, time.Now()); err != nil {
		t.Fatal(err)
	}
	b.seesNothing("/")
	b.seesNothing("/api/v1/environments")
}

func TestByIssuer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.browser(t)
	if status, got := b.send(http.MethodGet, "/signin/with/corp?return=%2Fnodes", "same-origin", nil); status != http.StatusOK || got != "GET Jane Doe" {
		t.Fatalf("sign in: got %d %q", status, got)
	}
	b.sees("/", "GET Jane Doe")
	for _, c := range b.cookies() {
		if strings.HasSuffix(c.Name, "-visit") {
			t.Errorf("the visit has not ended: %s", c.Name)
		}
	}

	// The rules of now decide, and nothing is stored that they do not use.
	w.trust(t, strings.ReplaceAll(anyRule, "groups: release", "groups: other"))
	b.seesNothing("/")
	w.trust(t, strings.ReplaceAll(anyRule, "groups: release", "picture: \"*\""))
	b.seesNothing("/")
	w.trust(t, anyRule)
	b.sees("/", "GET Jane Doe")
}

func TestIssuerAnswers(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		answer url.Values
		claims map[string]any
		want   string
	}{
		"another state":       {answer: url.Values{"state": {"guess"}}, want: "not the answer to a sign-in that began in this browser"},
		"no state":            {answer: url.Values{"state": nil}, want: "not the answer to a sign-in that began in this browser"},
		"another issuer":      {answer: url.Values{"iss": {"https://evil.example.com"}}, want: "evil.example.com"},
		"another code":        {answer: url.Values{"code": {"guess"}}, want: "does not accept the code: \"invalid_grant\""},
		"no code":             {answer: url.Values{"code": nil}, want: "has no code"},
		"refused":             {answer: url.Values{"error": {"access_denied"}, "error_description": {"not today"}}, want: `"access_denied" "not today"`},
		"another nonce":       {claims: map[string]any{"nonce": "guess"}, want: "for another sign-in"},
		"no nonce":            {claims: map[string]any{"nonce": nil}, want: "for another sign-in"},
		"for another client":  {claims: map[string]any{"aud": "registry"}, want: "is refused"},
		"expired":             {claims: map[string]any{"exp": time.Now().Add(-time.Hour).Unix()}, want: "expired"},
		"no rule":             {claims: map[string]any{"groups": []string{"guests"}}, want: "no rule in access.yaml matches it"},
		"no subject":          {claims: map[string]any{"sub": ""}, want: "sub"},
		"claims without end":  {claims: map[string]any{"groups": append(manyGroups(), "release")}, want: "let the issuer send fewer groups"},
		"issuer of the token": {claims: map[string]any{"iss": "https://evil.example.com"}, want: "is refused"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.provider.Answer, w.provider.Claims = test.answer, test.claims
			b := w.browser(t)
			status, got := b.send(http.MethodGet, "/signin/with/corp", "same-origin", nil)
			if status != http.StatusUnauthorized || !strings.Contains(got, test.want) {
				t.Errorf("got %d %q, want %q", status, got, test.want)
			}
			b.seesNothing("/")
		})
	}
}

func manyGroups() []string {
	groups := make([]string, 200)
	for i := range groups {
		groups[i] = strings.Repeat("g", 100)
	}
	return groups
}

// An answer that another browser began is refused: otherwise its owner would act as somebody else.
func TestVisitOfAnotherBrowser(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	mallory, jane := w.browser(t), w.browser(t)
	var callback string
	mallory.CheckRedirect = func(r *http.Request, _ []*http.Request) error {
		if strings.HasSuffix(r.URL.Path, "/callback") {
			callback = r.URL.RequestURI()
			return http.ErrUseLastResponse
		}
		return nil
	}
	mallory.send(http.MethodGet, "/signin/with/corp", "same-origin", nil)
	if callback == "" {
		t.Fatal("the issuer did not send the person back")
	}
	if status, got := jane.send(http.MethodGet, callback, "cross-site", nil); status != http.StatusUnauthorized {
		t.Errorf("got %d %q, want 401", status, got)
	}
	jane.seesNothing("/")
}

func TestFromOtherSites(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, text := w.token(t, "jane", time.Time{})
	b := w.browser(t)
	form := url.Values{"token": {text}}
	for _, site := range []string{"cross-site", "same-site", "none", ""} {
		if status, got := b.send(http.MethodPost, signin.TokenPath, site, form); status != http.StatusForbidden {
			t.Errorf("sign in from %q: got %d %q, want 403", site, status, got)
		}
	}
	if status, got := b.send(http.MethodGet, "/signin/with/corp", "cross-site", nil); status != http.StatusForbidden {
		t.Errorf("sign in at an issuer from another site: got %d %q, want 403", status, got)
	}
	b.signInByToken(text)
	for _, site := range []string{"cross-site", "same-site", "none", ""} {
		for _, path := range []string{"/promote", signin.OutPath} {
			if status, got := b.send(http.MethodPost, path, site, url.Values{}); status != http.StatusForbidden {
				t.Errorf("POST %s from %q: got %d %q, want 403", path, site, status, got)
			}
		}
	}
	if status, got := b.send(http.MethodPost, "/promote", "same-origin", url.Values{}); got != "POST jane" {
		t.Errorf("POST from a page of the service: got %d %q", status, got)
	}

	// The API changes nothing by a session, and tells other sites nothing. OCI clients have none.
	for name, answer := range map[string]func() (int, string){
		"POST to the API": func() (int, string) {
			return b.send(http.MethodPost, "/api/v1/promotions", "same-origin", url.Values{})
		},
		"GET from another site":   func() (int, string) { return b.send(http.MethodGet, "/api/v1/heads", "cross-site", nil) },
		"GET by a program":        func() (int, string) { return b.send(http.MethodGet, "/api/v1/heads", "", nil) },
		"GET of the OCI endpoint": func() (int, string) { return b.send(http.MethodGet, "/v2/", "same-origin", nil) },
	} {
		if status, got := answer(); status != http.StatusUnauthorized {
			t.Errorf("%s: got %d %q, want 401", name, status, got)
		}
	}
}

func TestSignOut(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, text := w.token(t, "jane", time.Time{})
	_, other := w.token(t, "joe", time.Time{})
	desk, phone, joe := w.browser(t), w.browser(t), w.browser(t)
	desk.signInByToken(text)
	phone.signInByToken(text)
	joe.signInByToken(other)
	stolen := desk.cookies()

	desk.send(http.MethodPost, signin.OutPath, "same-origin", url.Values{})
	desk.seesNothing("/")
	if len(desk.cookies()) > 0 {
		t.Errorf("the browser still has %v", desk.cookies())
	}
	u, _ := url.Parse(w.URL) // of a server that listens
	desk.Jar.SetCookies(u, stolen)
	desk.seesNothing("/")
	phone.sees("/", "GET jane")

	desk.signInByToken(text)
	phone.send(http.MethodPost, signin.OutPath, "same-origin", url.Values{"everywhere": {"1"}})
	desk.seesNothing("/")
	phone.seesNothing("/")
	joe.sees("/", "GET joe")
}

// Who signs in again gets another session, and the one before has ended.
func TestSessionsAreNew(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, text := w.token(t, "jane", time.Time{})
	b := w.browser(t)
	b.signInByToken(text)
	before := b.cookies()
	b.signInByToken(text)
	if before[0].Value == b.cookies()[0].Value {
		t.Error("the session is the one of before")
	}
	u, _ := url.Parse(w.URL) // of a server that listens
	b.Jar.SetCookies(u, before)
	b.seesNothing("/")
}

func TestCookie(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, text := w.token(t, "jane", time.Now().Add(time.Hour))
	r := httptest.NewRequest(http.MethodPost, w.URL+"/", nil)
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	a := httptest.NewRecorder()
	if err := w.authn.SignIn(a, r, text); err != nil {
		t.Fatal(err)
	}
	got := a.Result().Cookies()[0]
	if got.Name != "__Host-mlpromote" || !got.Secure || !got.HttpOnly || got.SameSite != http.SameSiteLaxMode || got.Path != "/" || got.Domain != "" {
		t.Errorf("cookie %s: want one that only this service gets, by TLS, without scripts", got)
	}
	if got.MaxAge <= 3500 || got.MaxAge > 3600 {
		t.Errorf("cookie for %d s, want the hour that the token has left", got.MaxAge)
	}
}

func TestGuesses(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, text := w.token(t, "jane", time.Time{})
	b := w.browser(t)
	for _, guess := range []string{"", "jane", "mlp_", "mlp_aaaaaaaaaaaaaaaa_" + strings.Repeat("a", 52)} {
		if status, got := b.signInByToken(guess); status != http.StatusUnauthorized {
			t.Errorf("%q: got %d %q, want 401", guess, status, got)
		}
	}
	for range 4 {
		b.signInByToken("mlp_aaaaaaaaaaaaaaaa_" + strings.Repeat("a", 52))
	}
	if status, got := b.signInByToken(text); status != http.StatusServiceUnavailable {
		t.Errorf("after many guesses: got %d %q, want 503", status, got)
	}
	for _, cookie := range []string{"", ".", "a", "aaaaaaaaaaaaaaaa.", "aaaaaaaaaaaaaaaa." + strings.Repeat("a", 52), strings.Repeat("x", 4000)} {
		u, _ := url.Parse(w.URL) // of a server that listens
		b.Jar.SetCookies(u, []*http.Cookie{{Name: "__Host-mlpromote", Value: cookie, Secure: true, Path: "/"}})
		b.seesNothing("/")
	}
}

// Whoever invents answers of an issuer has to wait, so that the service does not ask it again and again.
func TestInventedAnswers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.provider.Answer = url.Values{"code": {"guess"}}
	for range 4 {
		w.browser(t).send(http.MethodGet, "/signin/with/corp", "same-origin", nil)
	}
	if status, got := w.browser(t).send(http.MethodGet, "/signin/with/corp", "same-origin", nil); status != http.StatusServiceUnavailable {
		t.Errorf("after many answers: got %d %q, want 503", status, got)
	}
}

func TestLocal(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"/", "/models/vision/digits?tab=a&b=c", "/history#7", "/a%2F%2Fb", "/" + strings.Repeat("a", 1<<10-1)} {
		if got := signin.Local(path); got != path {
			t.Errorf("%q: got %q", path, got)
		}
	}
	for _, path := range []string{
		"", "models", "//evil.example.com", `/\evil.example.com`, "https://evil.example.com", "javascript:alert(1)", "/a b", "/a\nb",
		"/\t/evil.example.com", "/%", "/" + strings.Repeat("a", 1<<10), "/é", "/\x7f",
	} {
		if got := signin.Local(path); got != "/" {
			t.Errorf("%q: got %q, want /", path, got)
		}
	}
}

// damaged are tokens in a database that cannot be read.
type damaged struct{ storage.Tokens }

func (damaged) FindToken(context.Context, string) (storage.Token, error) {
	return storage.Token{}, registry.Errorf(registry.CodeInternal, "the database is damaged")
}

// What an operator has to see to is logged as an error, and what a person did wrong is not.
func TestLogOfRefusals(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, token := w.token(t, "jane", time.Time{})
	unreachable := oidc.New(oidc.Config{Issuers: []oidc.Issuer{{URL: "https://127.0.0.1:1", SignIn: &oidc.SignIn{Name: "corp", Client: "web"}}}}, nil, nil)
	broken, err := authn.New(t.Context(), authn.Config{Tokens: damaged{w.db}, Secrets: w.db, Sessions: w.db})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		authn        *authn.Authenticator
		method, path string
		token        string
		level        string
	}{
		"a wrong token":                  {w.authn, http.MethodPost, signin.TokenPath, "mlp_x", "INFO"},
		"an unknown issuer":              {w.authn, http.MethodGet, "/signin/with/other", "", "INFO"},
		"an issuer that is away":         {w.authn, http.MethodGet, "/signin/with/corp", "", "ERROR"},
		"a database that cannot be read": {broken, http.MethodPost, signin.TokenPath, token, "ERROR"},
	} {
		var log bytes.Buffer
		door := signin.New(signin.Config{Authenticator: c.authn, Issuers: func() *oidc.Identifier { return unreachable },
			Refuse: func(http.ResponseWriter, *http.Request, error, string) {}, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		r := httptest.NewRequest(c.method, c.path, strings.NewReader(url.Values{"token": {c.token}}.Encode()))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Sec-Fetch-Site", "same-origin")
		door.ServeHTTP(httptest.NewRecorder(), r)
		if got := log.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "level="+c.level) {
			t.Errorf("%s: the log has %q, want one line with the level %s", name, got, c.level)
		}
	}
}
