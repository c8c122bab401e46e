package oidc_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/access/oidc"
	"mlpromote.dev/mlpromote/registry/access/signin/signintest"
	"mlpromote.dev/mlpromote/registry/storage"
)

const callback = "https://models.example/signin/with/corp/callback"

// signInAt configures a service at which people of an issuer sign in, with a secret for the issuer.
func signInAt(t *testing.T, issuer string, ca []byte, secret string) oidc.Config {
	t.Helper()
	dir := t.TempDir()
	text := "issuers:\n  - issuer: " + issuer + "\n    audience: registry\n    ca: ca.pem\n" +
		"    signIn: {name: corp, client: web, secretFile: secret, scopes: [profile]}\n    rules:\n" +
		"      - match: {groups: release}\n        grants: [{allow: [promote], environment: prod, model: \"**\"}]\n"
	for name, data := range map[string]string{"ca.pem": string(ca), "secret": secret, "access.yaml": text} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c, err := oidc.Load(filepath.Join(dir, "access.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// company is an issuer at which people have accounts, and a service at which they sign in.
type company struct {
	*oidc.Identifier
	config oidc.Config
	issuer *signintest.Issuer
	ca     []byte
}

func newCompany(t *testing.T) company {
	t.Helper()
	issuer := signintest.New(t)
	ca, err := os.ReadFile(filepath.Join(issuer.Certificates, "ca.pem"))
	if err != nil {
		t.Fatal(err)
	}
	config := signInAt(t, issuer.URL, ca, signintest.Secret+"\n")
	return company{oidc.New(config, nil, nil), config, issuer, ca}
}

// visit begins a sign-in, goes to the page of the issuer, and returns what that sends the person back with.
func (c company) visit(t *testing.T) (oidc.Visit, url.Values) {
	t.Helper()
	v, page, err := c.Begin(t.Context(), "corp", callback)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(c.ca)
	browser := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, page, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := browser.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	back, err := response.Location()
	if err != nil || !strings.HasPrefix(back.String(), callback+"?") {
		t.Fatalf("the issuer sends people to %v, error %v, want %s", back, err, callback)
	}
	return v, back.Query()
}

// A person who signs in may what the rules of now say, and no claim is kept that they do not use.
func TestSignIn(t *testing.T) {
	t.Parallel()
	c := newCompany(t)
	v, answer := c.visit(t)
	who, err := c.Finish(t.Context(), v, callback, answer)
	if err != nil || who.Issuer != c.issuer.URL || who.Subject != "7" {
		t.Fatalf("got %+v and error %v, want the subject 7", who, err)
	}
	var kept map[string]any
	if err := json.Unmarshal(who.Claims, &kept); err != nil || kept["name"] != "Jane Doe" || kept["groups"] == nil || len(kept) != 3 {
		t.Errorf("kept are %s, error %v, want sub, name and groups", who.Claims, err)
	}
	p, err := c.ByClaims(who.Issuer, who.Claims)
	if err != nil || p.Person.Name != "Jane Doe" || !p.May(storage.PermissionPromote, "prod", "m") || p.MayAnywhere(storage.PermissionRead) {
		t.Errorf("got %+v and error %v, want somebody who may promote to prod", p, err)
	}
	if _, err := c.Finish(t.Context(), v, callback, answer); !registry.HasCode(err, registry.CodeUnauthenticated) {
		t.Errorf("the same answer again: error %v, want CodeUnauthenticated", err)
	}
	if ways := c.config.Ways(); len(ways) != 1 || ways[0] != (oidc.Way{Name: "corp", Issuer: c.issuer.URL}) {
		t.Errorf("people sign in by %+v, want corp", ways)
	}
	if facts := strings.Join(c.config.Facts(), "\n"); !strings.Contains(facts, "people sign in at "+c.issuer.URL+" as corp") {
		t.Errorf("the configuration says %s, and not that people sign in", facts)
	}
	if facts := strings.Join(signInAtNone(c.config).Facts(), "\n"); strings.Contains(facts, "people sign in") {
		t.Errorf("a configuration without it says %s", facts)
	}
}

// signInAtNone is a configuration by which nobody signs in with a browser.
func signInAtNone(c oidc.Config) oidc.Config {
	c.Issuers = slices.Clone(c.Issuers)
	c.Issuers[0].SignIn = nil
	return c
}

// An answer counts for the visit that asked for it, and a token for the client and person that it names.
func TestSignInRefuses(t *testing.T) {
	t.Parallel()
	set := func(name string, values ...string) func(*oidc.Visit, url.Values) {
		return func(_ *oidc.Visit, answer url.Values) { answer[name] = values }
	}
	for name, c := range map[string]struct {
		change func(*oidc.Visit, url.Values)
		claims signintest.Claims
	}{
		"another state":            {set("state", "guess"), nil},
		"no state":                 {set("state"), nil},
		"no visit":                 {func(v *oidc.Visit, answer url.Values) { v.State = ""; answer.Del("state") }, nil},
		"another issuer":           {set("iss", "https://evil.example.com"), nil},
		"an error":                 {set("error", "access_denied"), nil},
		"another code":             {set("code", "guess"), nil},
		"no code":                  {set("code"), nil},
		"another verifier":         {func(v *oidc.Visit, _ url.Values) { v.Verifier = strings.Repeat("a", 43) }, nil},
		"a visit without a nonce":  {func(v *oidc.Visit, _ url.Values) { v.Nonce = "" }, signintest.Claims{"nonce": ""}},
		"another nonce":            {nil, signintest.Claims{"nonce": "guess"}},
		"two nonces":               {nil, signintest.Claims{"nonce": []string{"a", "b"}}},
		"no nonce":                 {nil, signintest.Claims{"nonce": nil}},
		"for another client":       {nil, signintest.Claims{"aud": "registry"}},
		"expired":                  {nil, signintest.Claims{"exp": time.Now().Add(-time.Hour).Unix()}},
		"no subject":               {nil, signintest.Claims{"sub": nil}},
		"an empty subject":         {nil, signintest.Claims{"sub": ""}},
		"two subjects":             {nil, signintest.Claims{"sub": []string{"7", "8"}}},
		"no rule":                  {nil, signintest.Claims{"groups": "guests"}},
		"more claims than we keep": {nil, signintest.Claims{"groups": append(slices.Repeat([]string{strings.Repeat("g", 100)}, 200), "release")}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			co := newCompany(t)
			co.issuer.Claims = c.claims
			v, answer := co.visit(t)
			if c.change != nil {
				c.change(&v, answer)
			}
			if who, err := co.Finish(t.Context(), v, callback, answer); !registry.HasCode(err, registry.CodeUnauthenticated) {
				t.Errorf("got %+v and error %v, want CodeUnauthenticated", who, err)
			}
		})
	}
}

// RFC 9207 lets an issuer leave out its name.
func TestSignInWithoutTheNameOfTheIssuer(t *testing.T) {
	t.Parallel()
	c := newCompany(t)
	v, answer := c.visit(t)
	answer.Del("iss")
	if _, err := c.Finish(t.Context(), v, callback, answer); err != nil {
		t.Errorf("error %v, want none", err)
	}
}

// Claims of a session count while people sign in at the issuer, and a rule lets them in.
func TestByClaims(t *testing.T) {
	t.Parallel()
	c := newCompany(t)
	const claims = `{"sub":"7","groups":["release"]}`
	for name, row := range map[string]struct {
		service *oidc.Identifier
		issuer  string
		claims  string
		code    registry.Code // empty: they are let in
	}{
		"as before":                      {c.Identifier, c.issuer.URL, claims, ""},
		"of another issuer":              {c.Identifier, "https://evil.example.com", claims, registry.CodeUnauthenticated},
		"no rule":                        {c.Identifier, c.issuer.URL, `{"sub":"7","groups":["guests"]}`, registry.CodeUnauthenticated},
		"where people sign in no longer": {oidc.New(signInAtNone(c.config), nil, nil), c.issuer.URL, claims, registry.CodeUnauthenticated},
		"that cannot be read":            {c.Identifier, c.issuer.URL, `{`, registry.CodeInternal},
	} {
		p, err := row.service.ByClaims(row.issuer, []byte(row.claims))
		if (err == nil) != (row.code == "") || err != nil && !registry.HasCode(err, row.code) || row.code != "" && len(p.Grants) > 0 {
			t.Errorf("%s: got %+v and error %v, want the code %q", name, p, err, row.code)
		}
	}
}

// The secret of the client is read for each sign-in, and must be one line.
func TestSecretOfTheClient(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		secret string
		code   registry.Code // empty: people sign in
	}{
		"the secret":     {signintest.Secret, ""},
		"another secret": {"guess", registry.CodeUnauthenticated},
		"an empty file":  {" \n", registry.CodeInternal},
		"4 KiB":          {signintest.Secret + strings.Repeat(" ", 4<<10-len(signintest.Secret)), ""},
		"more":           {signintest.Secret + strings.Repeat(" ", 4<<10-len(signintest.Secret)+1), registry.CodeInternal},
		"no file":        {"", registry.CodeInternal},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			co := newCompany(t)
			v, answer := co.visit(t)
			path := co.config.Issuers[0].SignIn.SecretFile
			err := os.WriteFile(path, []byte(c.secret), 0o600)
			if c.secret == "" {
				err = os.Remove(path)
			}
			if err != nil {
				t.Fatal(err)
			}
			if _, err := co.Finish(t.Context(), v, callback, answer); (err == nil) != (c.code == "") || err != nil && !registry.HasCode(err, c.code) {
				t.Errorf("error %v, want the code %q", err, c.code)
			}
		})
	}
}

// odd is an issuer that says odd things, and counts how often it is asked what it is.
type odd struct {
	server   *httptest.Server
	asked    atomic.Int64
	document map[string]string // in place of what it would say
	exchange http.HandlerFunc
	service  *oidc.Identifier
	now      atomic.Pointer[time.Time]
}

func newOdd(t *testing.T, document map[string]string, exchange http.HandlerFunc) *odd {
	t.Helper()
	o := &odd{document: document, exchange: exchange}
	at := noon
	o.now.Store(&at)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		o.asked.Add(1)
		says := map[string]string{"issuer": o.server.URL, "jwks_uri": o.server.URL + "/keys",
			"authorization_endpoint": o.server.URL + "/authorize", "token_endpoint": o.server.URL + "/exchange"}
		maps.Copy(says, o.document)
		_ = json.NewEncoder(w).Encode(says) // fails if the caller is gone
	})
	mux.HandleFunc("POST /exchange", func(w http.ResponseWriter, r *http.Request) { o.exchange(w, r) })
	o.server = httptest.NewUnstartedServer(mux)
	o.server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, 0)
	o.server.StartTLS()
	t.Cleanup(o.server.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: o.server.Certificate().Raw})
	o.service = oidc.New(signInAt(t, o.server.URL, ca, "x"), func() time.Time { return *o.now.Load() }, nil)
	return o
}

// What an issuer answers to a code decides whether to sign in again or to try later. The code goes nowhere else.
func TestIssuersThatDoNotExchangeCodes(t *testing.T) {
	t.Parallel()
	says := func(status int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			fmt.Fprint(w, body)
		}
	}
	for name, c := range map[string]struct {
		exchange http.HandlerFunc
		code     registry.Code
	}{
		"a code that it refuses": {says(http.StatusBadRequest, `{"error":"invalid_grant"}`), registry.CodeUnauthenticated},
		"a failure":              {says(http.StatusBadGateway, `oops`), registry.CodeUnavailable},
		"no JSON":                {says(http.StatusOK, `oops`), registry.CodeUnavailable},
		"no ID token":            {says(http.StatusOK, `{"access_token":"a","token_type":"Bearer"}`), registry.CodeUnauthenticated},
		"an empty ID token":      {says(http.StatusOK, `{"access_token":"a","token_type":"Bearer","id_token":""}`), registry.CodeUnauthenticated},
		"an ID token of nobody":  {says(http.StatusOK, `{"access_token":"a","token_type":"Bearer","id_token":"a.b.c"}`), registry.CodeUnauthenticated},
		"another place": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		}, registry.CodeUnauthenticated},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newOdd(t, nil, c.exchange)
			v, _, err := o.service.Begin(t.Context(), "corp", callback)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := o.service.Finish(t.Context(), v, callback, url.Values{"state": {v.State}, "code": {"x"}}); !registry.HasCode(err, c.code) {
				t.Errorf("error %v, want the code %s", err, c.code)
			}
		})
	}
}

// People are sent to pages over TLS alone, and an issuer is asked for its pages once in a while.
func TestPagesOfIssuers(t *testing.T) {
	t.Parallel()
	for name, document := range map[string]map[string]string{
		"another issuer":              {"issuer": "https://evil.example.com"},
		"no page":                     {"authorization_endpoint": ""},
		"a page without TLS":          {"authorization_endpoint": "http://idp.example.com/authorize"},
		"codes exchanged without TLS": {"token_endpoint": "http://idp.example.com/exchange"},
		"a page that is no URL":       {"authorization_endpoint": "https://%zz"},
	} {
		o := newOdd(t, document, nil)
		if _, page, err := o.service.Begin(t.Context(), "corp", callback); !registry.HasCode(err, registry.CodeUnavailable) {
			t.Errorf("%s: people are sent to %q, error %v, want CodeUnavailable", name, page, err)
		}
	}
	o := newOdd(t, nil, nil)
	begin := func() {
		t.Helper()
		if _, _, err := o.service.Begin(t.Context(), "corp", callback); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		after time.Duration // noon
		asked int64         // by then
	}{{0, 1}, {oidc.FetchInterval - 1, 1}, {oidc.FetchInterval, 2}, {oidc.FetchInterval + 1, 2}, {-time.Hour, 3}} { // last: the clock was turned back
		at := noon.Add(c.after)
		o.now.Store(&at)
		if begin(); o.asked.Load() != c.asked {
			t.Errorf("%v after noon: it was asked %d times, want %d", c.after, o.asked.Load(), c.asked)
		}
	}
	if _, _, err := o.service.Begin(t.Context(), "other", callback); !registry.HasCode(err, registry.CodeNotFound) {
		t.Errorf("an unknown name: error %v, want CodeNotFound", err)
	}
	if _, err := o.service.Finish(t.Context(), oidc.Visit{Name: "other"}, callback, nil); !registry.HasCode(err, registry.CodeNotFound) {
		t.Errorf("a visit of an unknown name: error %v, want CodeNotFound", err)
	}
}

// Who asks for the claims of a token gets those that the issuer signed.
func TestClaims(t *testing.T) {
	t.Parallel()
	i := newIssuer(t, "")
	claims, err := i.Claims(t.Context(), i.token(t, i.key, map[string]any{"sub": "alice"}))
	if err != nil || string(claims["sub"]) != `"alice"` {
		t.Errorf("got %s and error %v, want the subject alice", claims["sub"], err)
	}
	for name, token := range map[string]string{
		"of another issuer": i.token(t, i.key, map[string]any{"iss": "https://evil.example.com"}), "that is none": "a.b.c",
		"that has expired": i.token(t, i.key, map[string]any{"exp": noon.Add(-time.Hour).Unix()}),
	} {
		if claims, err := i.Claims(t.Context(), token); !registry.HasCode(err, registry.CodeUnauthenticated) || len(claims) > 0 {
			t.Errorf("a token %s: got %v and error %v, want CodeUnauthenticated", name, claims, err)
		}
	}
}
