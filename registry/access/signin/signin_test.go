package signin_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"encoding/pem"
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

	"github.com/coreos/go-oidc/v3/oidc/oidctest"
	"golang.org/x/oauth2"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/access"
	"mlpromote.dev/mlpromote/registry/access/authn"
	"mlpromote.dev/mlpromote/registry/access/oidc"
	"mlpromote.dev/mlpromote/registry/access/signin"
	"mlpromote.dev/mlpromote/registry/mem"
)

// provider is an issuer at which people sign in: it knows them already, and sends them back at once.
type provider struct {
	*httptest.Server
	inner oidctest.Server
	key   *ecdsa.PrivateKey

	mu     sync.Mutex
	codes  map[string]url.Values // what the request for each code asked; a code is good once
	claims map[string]any        // of the next ID token, beside what every token has
	answer url.Values            // sent back beside code and state; replaces them
}

func newProvider(t *testing.T) *provider {
	t.Helper()
	p := &provider{codes: map[string]url.Values{}}
	var err error
	if p.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		t.Fatal(err)
	}
	p.inner.PublicKeys = []oidctest.PublicKey{{PublicKey: p.key.Public(), KeyID: "k", Algorithm: "ES256"}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(map[string]string{
			"issuer": p.URL, "jwks_uri": p.URL + "/keys",
			"authorization_endpoint": p.URL + "/authorize", "token_endpoint": p.URL + "/exchange",
		})
	})
	mux.HandleFunc("GET /authorize", p.authorize)
	mux.HandleFunc("POST /exchange", p.exchange)
	mux.Handle("/", &p.inner)
	p.Server = httptest.NewTLSServer(mux)
	t.Cleanup(p.Close)
	p.inner.SetIssuer(p.URL)
	return p
}

func (p *provider) authorize(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	asked, code := r.URL.Query(), rand.Text()
	p.codes[code] = asked
	back := url.Values{"code": {code}, "state": {asked.Get("state")}, "iss": {p.URL}}
	for name, values := range p.answer {
		back[name] = values
	}
	http.Redirect(w, r, asked.Get("redirect_uri")+"?"+back.Encode(), http.StatusFound)
}

// exchange gives the ID token for a code to the client that asked for it, once.
func (p *provider) exchange(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	id, secret, _ := r.BasicAuth()
	asked, known := p.codes[r.FormValue("code")]
	delete(p.codes, r.FormValue("code"))
	w.Header().Set("Content-Type", "application/json")
	if !known || id != "web" || secret != "hidden" || r.FormValue("redirect_uri") != asked.Get("redirect_uri") ||
		oauth2.S256ChallengeFromVerifier(r.FormValue("code_verifier")) != asked.Get("code_challenge") {
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprint(w, `{"error":"invalid_grant"}`)
		return
	}
	now := time.Now()
	claims := map[string]any{
		"iss": p.URL, "aud": "web", "sub": "7", "nonce": asked.Get("nonce"), "name": "Jane Doe", "groups": []string{"release"},
		"iat": now.Unix(), "exp": now.Add(time.Minute).Unix(), "picture": "not stored",
	}
	for name, value := range p.claims {
		claims[name] = value
	}
	text, _ := json.Marshal(claims) // of strings and numbers
	_ = json.NewEncoder(w).Encode(map[string]any{
		"access_token": "a", "token_type": "Bearer", "id_token": oidctest.SignIDToken(p.key, "k", "ES256", string(text)),
	})
}

// world is a service at which people sign in, with a page at / that says who they are.
type world struct {
	*httptest.Server
	provider *provider
	db       *mem.DB
	mu       sync.Mutex
	issuers  *oidc.Identifier
	authn    *authn.Authenticator
}

const anyRule = "      - match: {groups: release}\n        grants: [{allow: [read, promote], environment: prod, model: \"**\"}]\n"

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{provider: newProvider(t), db: mem.New()}
	w.trust(t, anyRule)
	mux := http.NewServeMux()
	w.Server = httptest.NewUnstartedServer(mux)
	w.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, 0)
	w.StartTLS()
	t.Cleanup(w.Close)
	var err error
	w.authn, err = authn.New(t.Context(), authn.Config{
		Tokens: w.db, Secrets: w.db, Sessions: w.db, Failures: authn.Rate{PerSecond: 0.01, Burst: 3},
		ByClaims: func(_ context.Context, issuer string, claims []byte) (registry.Principal, error) {
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
		p, ok := registry.PrincipalOf(r.Context())
		if err := access.Allow(r.Context(), registry.PermissionPromote, "prod", "m"); !ok && err == nil {
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
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: w.provider.Certificate().Raw})
	text := "issuers:\n  - issuer: " + w.provider.URL + "\n    audience: registry\n    ca: ca.pem\n" +
		"    signIn: {name: corp, client: web, secretFile: secret, scopes: [profile]}\n    rules:\n" + rules
	for name, data := range map[string]string{"ca.pem": string(ca), "secret": "hidden\n", "access.yaml": text} {
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
func (w *world) token(t *testing.T, name string, expires time.Time) (registry.Token, string) {
	t.Helper()
	k, text, err := access.Mint(name, []registry.Grant{
		{Permissions: []registry.Permission{registry.PermissionPromote}, Environment: "prod", Model: "**"}}, time.Now(), expires)
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
	transport.TLSClientConfig.RootCAs.AddCert(w.provider.Certificate())
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
