package signin_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/access"
	"mlpromote.dev/mlpromote/registry/access/authn"
	"mlpromote.dev/mlpromote/registry/access/oidc"
	"mlpromote.dev/mlpromote/registry/access/signin"
	"mlpromote.dev/mlpromote/registry/access/signin/signintest"
	"mlpromote.dev/mlpromote/registry/mem"
	"mlpromote.dev/mlpromote/registry/storage"
)

// world is a service at which people sign in, with a page at / that says who they are.
type world struct {
	*httptest.Server
	provider *signintest.Issuer
	db       *mem.DB
	mu       sync.Mutex
	issuers  *oidc.Identifier
	authn    *authn.Authenticator
}

const anyRule = "      - match: {groups: release}\n        grants: [{allow: [read, promote], environment: prod, model: \"**\"}]\n"

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{provider: signintest.New(t), db: mem.New()}
	w.trust(t, anyRule)
	mux := http.NewServeMux()
	w.Server = httptest.NewUnstartedServer(mux)
	w.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, 0)
	w.StartTLS()
	t.Cleanup(w.Close)
	var err error
	w.authn, err = authn.New(t.Context(), authn.Config{
		Tokens: w.db, Secrets: w.db, Sessions: w.db, Failures: authn.Rate{PerSecond: 0.01, Burst: 3},
		ByClaims: func(_ context.Context, issuer string, claims []byte) (storage.Principal, error) {
			return w.now().ByClaims(issuer, claims)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	door := signin.New(signin.Config{Authenticator: w.authn, Issuers: w.now,
		Refuse: func(a http.ResponseWriter, _ *http.Request, err error, back string) {
			a.Header().Set("Back", back)
			http.Error(a, err.Error(), registry.CodeOf(err).HTTPStatus())
		}})
	mux.Handle("/signin/", door)
	mux.Handle("/signout", door)
	says := http.HandlerFunc(func(a http.ResponseWriter, r *http.Request) {
		p, ok := storage.PrincipalOf(r.Context())
		if err := access.Allow(r.Context(), storage.PermissionPromote, "prod", "m"); !ok && err == nil {
			t.Error("somebody unknown may promote")
		} else if err != nil {
			http.Error(a, err.Error(), registry.CodeOf(err).HTTPStatus())
			return
		}
		fmt.Fprintf(a, "%s %s", r.Method, p.Person.Name+p.Person.Token)
	})
	mux.Handle("/", w.authn.Pages(says))
	mux.Handle("/api/", w.authn.API(says))
	mux.Handle("/v2/", w.authn.Registry(says))
	return w
}

func (w *world) now() *oidc.Identifier {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.issuers
}

// trust makes the rules those of the service from now on.
func (w *world) trust(t *testing.T, rules string) {
	t.Helper()
	dir := t.TempDir()
	ca, err := os.ReadFile(filepath.Join(w.provider.Certificates, "ca.pem"))
	if err != nil {
		t.Fatal(err)
	}
	text := "issuers:\n  - issuer: " + w.provider.URL + "\n    audience: registry\n    ca: ca.pem\n" +
		"    signIn: {name: corp, client: web, secretFile: secret, scopes: [profile]}\n    rules:\n" + rules
	for name, data := range map[string]string{"ca.pem": string(ca), "secret": signintest.Secret + "\n", "access.yaml": text} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c, err := oidc.Load(filepath.Join(dir, "access.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.issuers = oidc.New(c, nil, nil)
}

// token makes a token of the service that may promote.
func (w *world) token(t *testing.T, name string, expires time.Time) (storage.Token, string) {
	t.Helper()
	k, text, err := access.Mint(name, []storage.Grant{
		{Permissions: []storage.Permission{storage.PermissionPromote}, Environment: "prod", Model: "**"}}, time.Now(), expires)
	if err == nil {
		err = w.db.CreateToken(t.Context(), k)
	}
	if err != nil {
		t.Fatal(err)
	}
	return k, text
}

// browser has cookies of its own. It says from where it sends requests, as browsers do.
type browser struct {
	t *testing.T
	w *world
	*http.Client
}

func (w *world) browser(t *testing.T) browser {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	transport := w.Client().Transport.(*http.Transport).Clone()
	ca, err := os.ReadFile(filepath.Join(w.provider.Certificates, "ca.pem"))
	if err != nil || !transport.TLSClientConfig.RootCAs.AppendCertsFromPEM(ca) {
		t.Fatalf("the CA of the issuer cannot be read: %v", err)
	}
	return browser{t, w, &http.Client{Transport: transport, Jar: jar}}
}

// send sends a request from a site ("same-origin", "cross-site", ...; empty: it does not say) and returns
// the status and the body of the page to which that leads.
func (b browser) send(method, path, site string, form url.Values) (int, string) {
	b.t.Helper()
	r, err := http.NewRequestWithContext(b.t.Context(), method, b.w.URL+path, strings.NewReader(form.Encode()))
	if err != nil {
		b.t.Fatal(err)
	}
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	if site != "" {
		r.Header.Set("Sec-Fetch-Site", site)
	}
	answer, err := b.Do(r)
	if err != nil {
		b.t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	return answer.StatusCode, strings.TrimSpace(string(body))
}

// sees checks what a page says.
func (b browser) sees(path, want string) {
	b.t.Helper()
	if status, got := b.send(http.MethodGet, path, "same-origin", nil); status != http.StatusOK || got != want {
		b.t.Errorf("%s: got %d %q, want %q", path, status, got, want)
	}
}

// seesNothing checks that a page asks to sign in.
func (b browser) seesNothing(path string) {
	b.t.Helper()
	if status, got := b.send(http.MethodGet, path, "same-origin", nil); status != http.StatusUnauthorized {
		b.t.Errorf("%s: got %d %q, want 401", path, status, got)
	}
}

func (b browser) signInByToken(text string) (int, string) {
	b.t.Helper()
	return b.send(http.MethodPost, signin.TokenPath, "same-origin", url.Values{"token": {text}, "return": {"/models/x?a=b"}})
}

func (b browser) cookies() []*http.Cookie {
	u, _ := url.Parse(b.w.URL) // of a server that listens
	return b.Jar.Cookies(u)
}
