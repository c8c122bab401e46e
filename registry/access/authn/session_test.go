package authn_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/access"
	"mlpromote.dev/mlpromote/registry/access/authn"
	"mlpromote.dev/mlpromote/registry/storage"
)

const site = "Sec-Fetch-Site"

// withSessions is a service at which people sign in, also as "jane" at an issuer.
func withSessions(t *testing.T, edits ...func(*authn.Config)) *world {
	t.Helper()
	var w *world
	w = setup(t, append([]func(*authn.Config){func(c *authn.Config) {
		c.Sessions = c.Tokens.(storage.Sessions)
		c.ByClaims = func(_ context.Context, issuer string, claims []byte) (storage.Principal, error) {
			if issuer != "https://id.example.com" || string(claims) != `{"sub":"jane"}` {
				return storage.Principal{}, registry.Errorf(registry.CodeUnauthenticated, "no rule lets them in")
			}
			return storage.Principal{Name: "jane", Grants: w.grants()}, nil
		}
	}}, edits...)...)
	return w
}

func (w *world) grants() []storage.Grant {
	return []storage.Grant{{Permissions: []storage.Permission{storage.PermissionRead}, Environment: "**", Model: "**"}}
}

// asked is a request of a browser with its cookies. site is what it says of the page that sent it.
func asked(method, from string, cookies ...*http.Cookie) *http.Request {
	r := httptest.NewRequest(method, "/", nil)
	if from != "" {
		r.Header.Set(site, from)
	}
	for _, c := range cookies {
		r.AddCookie(c)
	}
	return r
}

// signIn signs in with a token, from a browser that may have cookies, and returns its new cookie.
func (w *world) signIn(t *testing.T, token string, cookies ...*http.Cookie) *http.Cookie {
	t.Helper()
	recorder := httptest.NewRecorder()
	if err := w.SignIn(recorder, asked(http.MethodPost, "same-origin", cookies...), token); err != nil {
		t.Fatal(err)
	}
	all := recorder.Result().Cookies()
	if len(all) != 1 || all[0].Value == "" || !all[0].HttpOnly {
		t.Fatalf("got the cookies %v, want one that scripts cannot read", all)
	}
	return all[0]
}

// who is the principal that a page sees, or the code of its refusal.
func (w *world) who(r *http.Request) (name string, code registry.Code) {
	w.Pages(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		p, _ := storage.PrincipalOf(r.Context())
		if name = p.Name; access.RefusalOf(r.Context()) != nil {
			name, code = "", registry.CodeOf(access.RefusalOf(r.Context()))
		}
	})).ServeHTTP(httptest.NewRecorder(), r)
	return name, code
}

// A session that a token opened lasts for half a day, and no longer than the token.
func TestSessionsEnd(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		token time.Time // when it expires; zero: never
		at    time.Time
		ends  bool
	}{
		"at first":                       {noon.Add(time.Hour), noon, false},
		"before the token expires":       {noon.Add(time.Hour), noon.Add(time.Hour - time.Second), false},
		"when the token expires":         {noon.Add(time.Hour), noon.Add(time.Hour), true},
		"of a token that never expires":  {time.Time{}, noon.Add(authn.SessionLife - time.Second), false},
		"after half a day":               {time.Time{}, noon.Add(authn.SessionLife), true},
		"of a token that expires later":  {noon.Add(48 * time.Hour), noon.Add(authn.SessionLife), true},
		"of a token that expires, later": {noon.Add(48 * time.Hour), noon.Add(authn.SessionLife - time.Second), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := withSessions(t)
			_, text := w.mint(t, "person", c.token, w.grants()...)
			cookie := w.signIn(t, text)
			w.at(c.at)
			got, code := w.who(asked(http.MethodGet, "same-origin", cookie))
			if c.ends && code != registry.CodeUnauthenticated || !c.ends && got != "token:person" {
				t.Errorf("the page sees %q, refused with %q; want ended %t", got, code, c.ends)
			}
		})
	}
}

// A token that is revoked, or not there any more, opens nothing and ends its sessions.
func TestSessionsOfRevokedTokens(t *testing.T) {
	t.Parallel()
	w := withSessions(t)
	cookie := w.signIn(t, w.text)
	if err := w.db.RevokeToken(t.Context(), w.id, noon); err != nil {
		t.Fatal(err)
	}
	if _, code := w.who(asked(http.MethodGet, "same-origin", cookie)); code != registry.CodeUnauthenticated {
		t.Errorf("the session: refused with %q, want CodeUnauthenticated", code)
	}
	if err := w.SignIn(httptest.NewRecorder(), asked(http.MethodPost, "same-origin"), w.text); !registry.HasCode(err, registry.CodeUnauthenticated) {
		t.Errorf("another sign-in: error %v, want CodeUnauthenticated", err)
	}
	restored := setup(t, func(c *authn.Config) { c.Sessions = w.db }) // a database that an older backup replaced
	if _, code := restored.who(asked(http.MethodGet, "same-origin", cookie)); code != registry.CodeUnauthenticated {
		t.Errorf("a session whose token is gone: refused with %q, want CodeUnauthenticated", code)
	}
}

// A session counts for what pages of this service send, and for what people open themselves.
func TestSessionsOfOtherSites(t *testing.T) {
	t.Parallel()
	w := withSessions(t)
	cookie := w.signIn(t, w.text)
	const session, nobody, forbidden = "token:ci", registry.CodeUnauthenticated, registry.CodeForbidden
	for name, c := range map[string]struct {
		method, site, origin string
		page                 string        // principal
		refused              registry.Code // of the page
		api                  bool          // the session counts for the API too
	}{
		"reads from a page of ours":                  {http.MethodGet, "same-origin", "", session, "", true},
		"reads what a person typed":                  {http.MethodGet, "none", "", session, "", true},
		"looks from a page of ours":                  {http.MethodHead, "same-origin", "", session, "", true},
		"reads by a link of another site":            {http.MethodGet, "cross-site", "", session, "", false},
		"reads in an old browser":                    {http.MethodGet, "", "", session, "", false},
		"changes from a page of ours":                {http.MethodPost, "same-origin", "", session, "", false},
		"changes from a page of ours, old browser":   {http.MethodPost, "", "http://example.com", session, "", false},
		"changes what a person typed":                {http.MethodPost, "none", "", "", forbidden, false},
		"changes from another site":                  {http.MethodPost, "cross-site", "", "", forbidden, false},
		"changes from another site, that says ours":  {http.MethodPost, "cross-site", "http://example.com", "", forbidden, false},
		"changes from another site, old browser":     {http.MethodPost, "", "https://evil.example", "", forbidden, false},
		"changes without saying from where":          {http.MethodPost, "", "", "", forbidden, false},
		"deletes from another port of this computer": {http.MethodDelete, "same-site", "", "", forbidden, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := asked(c.method, c.site, cookie)
			if c.origin != "" {
				r.Header.Set("Origin", c.origin)
			}
			if got, code := w.who(r); got != c.page || code != c.refused {
				t.Errorf("the page sees %q, refused with %q; want %q, %q", got, code, c.page, c.refused)
			}
			recorder := httptest.NewRecorder()
			w.API(w.inner).ServeHTTP(recorder, r)
			if (recorder.Code == http.StatusOK) != c.api || !c.api && recorder.Code != http.StatusUnauthorized {
				t.Errorf("the API answers %d %s, want the session to count: %t", recorder.Code, recorder.Body, c.api)
			}
			recorder = httptest.NewRecorder()
			w.Registry(w.inner).ServeHTTP(recorder, r)
			if p := decode[storage.Principal](t, recorder); p.Name != "" {
				t.Errorf("the OCI endpoint sees %q, want nobody: it has no sessions", p.Name)
			}
		})
	}
	if _, code := w.who(asked(http.MethodGet, "same-origin")); code != nobody {
		t.Errorf("without a session: refused with %q, want %q", code, nobody)
	}
	both := asked(http.MethodGet, "same-origin", cookie)
	both.Header.Set("Authorization", "Bearer mlp_x")
	if name, code := w.who(both); name != "" || code != nobody {
		t.Errorf("a program with a wrong token and a session: %q, refused with %q, want %q", name, code, nobody)
	}
}

// A person is asked to sign in, and a program for a token.
func TestWhoIsNotSignedIn(t *testing.T) {
	t.Parallel()
	w := withSessions(t)
	for header, says := range map[string]bool{"": true, "Bearer mlp_x": false} {
		r := asked(http.MethodGet, "same-origin")
		if header != "" {
			r.Header.Set("Authorization", header)
		}
		var err error
		w.Pages(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { err = access.RefusalOf(r.Context()) })).ServeHTTP(httptest.NewRecorder(), r)
		if !registry.HasCode(err, registry.CodeUnauthenticated) || strings.Contains(err.Error(), "you are not signed in") != says {
			t.Errorf("with the header %q: error %v, want that it speaks of signing in: %t", header, err, says)
		}
	}
}

func TestSignInRefuses(t *testing.T) {
	t.Parallel()
	w := withSessions(t, func(c *authn.Config) { c.Failures = authn.Rate{PerSecond: 0.01, Burst: 2} })
	for name, c := range map[string]struct {
		site, token string
		code        registry.Code
	}{
		"from another site": {"cross-site", w.text, registry.CodeForbidden},
		"without a site":    {"", w.text, registry.CodeForbidden},
		"with no token":     {"same-origin", "", registry.CodeUnauthenticated},
		"with a JWT":        {"same-origin", "eyJhbGciOiJSUzI1NiJ9.e30.c2ln", registry.CodeUnauthenticated},
	} {
		recorder := httptest.NewRecorder()
		if err := w.SignIn(recorder, asked(http.MethodPost, c.site), c.token); !registry.HasCode(err, c.code) || len(recorder.Result().Cookies()) > 0 {
			t.Errorf("%s: error %v with the cookies %v, want the code %s and none", name, err, recorder.Result().Cookies(), c.code)
		}
	}
	guess := func(last byte) error { // with bytes that no token has
		text := w.text[:len(w.text)-2] + strings.Repeat(string(last), 2)
		return w.SignIn(httptest.NewRecorder(), asked(http.MethodPost, "same-origin"), text)
	}
	for _, last := range []byte("01") {
		if err := guess(last); !registry.HasCode(err, registry.CodeUnauthenticated) {
			t.Errorf("a guess: error %v, want CodeUnauthenticated", err)
		}
	}
	if err := guess('8'); !registry.HasCode(err, registry.CodeUnavailable) {
		t.Errorf("after two guesses: error %v, want CodeUnavailable", err)
	}
	if err := w.MayTry(asked(http.MethodGet, "")); !registry.HasCode(err, registry.CodeUnavailable) {
		t.Errorf("at an issuer after two guesses: error %v, want CodeUnavailable", err)
	}
}

// Sign-ins at an issuer that fail count as guesses, and those that succeed or fail otherwise do not.
func TestFailedSignIns(t *testing.T) {
	t.Parallel()
	w := withSessions(t, func(c *authn.Config) { c.Failures = authn.Rate{PerSecond: 0.01, Burst: 1} })
	r := asked(http.MethodGet, "")
	w.Failed(r, nil)
	w.Failed(r, registry.Errorf(registry.CodeUnavailable, "the issuer does not answer"))
	if err := w.MayTry(r); err != nil {
		t.Errorf("before a failure: %v", err)
	}
	w.Failed(r, registry.Errorf(registry.CodeUnauthenticated, "no rule"))
	if err := w.MayTry(r); !registry.HasCode(err, registry.CodeUnavailable) {
		t.Errorf("after a failure: error %v, want CodeUnavailable", err)
	}
}

// A browser has one session. Who signs out ends it, or all of theirs, and no one else's.
func TestSignOut(t *testing.T) {
	t.Parallel()
	w := withSessions(t)
	_, other := w.mint(t, "other", noon.Add(time.Hour), w.grants()...)
	first := w.signIn(t, w.text)
	second := w.signIn(t, w.text, first)
	third, others := w.signIn(t, w.text), w.signIn(t, other)
	signedIn := func(when string, want bool, cookies ...*http.Cookie) {
		t.Helper()
		for _, c := range cookies {
			if name, _ := w.who(asked(http.MethodGet, "same-origin", c)); (name != "") != want {
				t.Errorf("%s: signed in is %t as %q, want %t", when, name != "", name, want)
			}
		}
	}
	signOut := func(r *http.Request, everywhere bool) error {
		recorder := httptest.NewRecorder()
		err := w.SignOut(recorder, r, everywhere)
		if all := recorder.Result().Cookies(); err == nil && (len(all) != 1 || all[0].MaxAge >= 0) {
			t.Errorf("got the cookies %v, want the browser's deleted", all)
		}
		return err
	}
	signedIn("signed in again", false, first)
	signedIn("signed in again", true, second, third, others)
	if err := signOut(asked(http.MethodPost, "cross-site", second), false); !registry.HasCode(err, registry.CodeForbidden) {
		t.Errorf("from another site: error %v, want CodeForbidden", err)
	}
	signedIn("another site", true, second)
	for name, r := range map[string]*http.Request{"signed out": asked(http.MethodPost, "same-origin", second),
		"already": asked(http.MethodPost, "same-origin", second), "never signed in": asked(http.MethodPost, "same-origin")} {
		if err := signOut(r, false); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	signedIn("signed out", false, second)
	signedIn("signed out", true, third, others)
	fourth := w.signIn(t, w.text)
	if err := signOut(asked(http.MethodPost, "same-origin", third), true); err != nil {
		t.Errorf("everywhere: %v", err)
	}
	signedIn("signed out everywhere", false, third, fourth)
	signedIn("signed out everywhere", true, others)
}

// Who signs in at an issuer has a session while a rule lets them in.
func TestSignInAt(t *testing.T) {
	t.Parallel()
	const issuer = "https://id.example.com"
	w := withSessions(t)
	recorder := httptest.NewRecorder()
	if err := w.SignInAt(recorder, asked(http.MethodGet, ""), issuer, "jane", []byte(`{"sub":"jane"}`)); err != nil {
		t.Fatal(err)
	}
	if name, code := w.who(asked(http.MethodGet, "same-origin", recorder.Result().Cookies()...)); name != "jane" {
		t.Errorf("the page sees %q, refused with %q, want jane", name, code)
	}
	for name, c := range map[string]struct {
		edit   func(*authn.Config)
		claims string
		code   registry.Code
	}{
		"no rule":                {func(*authn.Config) {}, `{"sub":"joe"}`, registry.CodeUnauthenticated},
		"a service of no issuer": {func(c *authn.Config) { c.ByClaims = nil }, `{"sub":"jane"}`, registry.CodeUnauthenticated},
		"a service of no people": {func(c *authn.Config) { c.Sessions = nil }, `{"sub":"jane"}`, registry.CodeInvalid},
	} {
		recorder := httptest.NewRecorder()
		err := withSessions(t, c.edit).SignInAt(recorder, asked(http.MethodGet, ""), issuer, "jane", []byte(c.claims))
		if !registry.HasCode(err, c.code) || len(recorder.Result().Cookies()) > 0 {
			t.Errorf("%s: error %v with the cookies %v, want the code %s and none", name, err, recorder.Result().Cookies(), c.code)
		}
	}
}

// lost are sessions in a database that stopped to answer some calls.
type lost struct {
	storage.Sessions
	find, end, create bool
}

var errLost = errors.New("the database does not answer")

func (l *lost) FindSession(ctx context.Context, id string) (storage.Session, error) {
	if l.find {
		return storage.Session{}, errLost
	}
	return l.Sessions.FindSession(ctx, id)
}

func (l *lost) EndSession(ctx context.Context, id string) error {
	if l.end {
		return errLost
	}
	return l.Sessions.EndSession(ctx, id)
}

func (l *lost) EndSessions(ctx context.Context, owner string) (int, error) {
	if l.end {
		return 0, errLost
	}
	return l.Sessions.EndSessions(ctx, owner)
}

func (l *lost) CreateSession(ctx context.Context, s storage.Session) error {
	if l.create {
		return errLost
	}
	return l.Sessions.CreateSession(ctx, s)
}

// A sign-in or sign-out that did not happen says so, and the browser keeps the cookie that it has.
func TestSessionsThatCannotBeStored(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		lost lost
		do   func(w *world, a http.ResponseWriter, r *http.Request) error
	}{
		"signs in":                          {lost{create: true}, func(w *world, a http.ResponseWriter, r *http.Request) error { return w.SignIn(a, r, w.text) }},
		"signs in, and ends the one before": {lost{end: true}, func(w *world, a http.ResponseWriter, r *http.Request) error { return w.SignIn(a, r, w.text) }},
		"signs out":                         {lost{end: true}, func(w *world, a http.ResponseWriter, r *http.Request) error { return w.SignOut(a, r, false) }},
		"signs out everywhere":              {lost{end: true}, func(w *world, a http.ResponseWriter, r *http.Request) error { return w.SignOut(a, r, true) }},
		"signs out of what is not found":    {lost{find: true}, func(w *world, a http.ResponseWriter, r *http.Request) error { return w.SignOut(a, r, false) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := new(lost)
			w := withSessions(t, func(config *authn.Config) { l.Sessions = config.Sessions; config.Sessions = l })
			cookie := w.signIn(t, w.text)
			l.find, l.end, l.create = c.lost.find, c.lost.end, c.lost.create
			recorder := httptest.NewRecorder()
			err := c.do(w, recorder, asked(http.MethodPost, "same-origin", cookie))
			if !errors.Is(err, errLost) || len(recorder.Result().Cookies()) > 0 {
				t.Errorf("error %v with the cookies %v, want that of the database and none", err, recorder.Result().Cookies())
			}
		})
	}
	l := &lost{find: true}
	w := withSessions(t, func(config *authn.Config) { l.Sessions = config.Sessions; config.Sessions = l })
	if _, code := w.who(asked(http.MethodGet, "same-origin", w.signIn(t, w.text))); code != registry.CodeInternal {
		t.Errorf("a page: refused with %q, want CodeInternal: nobody has signed out", code)
	}
}

// Only a service over TLS can have cookies that other services of its host cannot set.
func TestCookies(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		url    string
		name   string
		secure bool
	}{"without TLS": {"", "mlpromote", false}, "over TLS": {"https://models.example", "__Host-mlpromote", true}} {
		w := setup(t, func(config *authn.Config) { config.URL = c.url })
		got := w.Cookie(asked(http.MethodGet, ""), "-visit", "x", time.Minute)
		if got.Name != c.name+"-visit" || got.Secure != c.secure || got.MaxAge != 60 || got.Path != "/" || got.SameSite != http.SameSiteLaxMode {
			t.Errorf("%s: got %+v, want the name %s and secure %t", name, got, c.name, c.secure)
		}
		if gone := w.Cookie(asked(http.MethodGet, ""), "", "", -time.Minute); gone.MaxAge != -1 {
			t.Errorf("%s: a cookie to delete has the age %d, want -1", name, gone.MaxAge)
		}
	}
}
