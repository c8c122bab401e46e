// Package signintest has an issuer at which people sign in, for tests: OpenID Connect with authorization codes and PKCE, over TLS, on this
// machine. Its host name is localhost, so that it is another site than a service at 127.0.0.1.
package signintest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coreos/go-oidc/v3/oidc/oidctest"
	"golang.org/x/oauth2"

	"mlpromote.dev/mlpromote/registry/registrytest"
)

const (
	// Client is what the issuer calls the service.
	Client = "web"
	// Secret is that of the client.
	Secret = "hidden"
)

// Issuer is one. Set its fields before it is asked.
type Issuer struct {
	URL          string            // by name, not by address
	Certificates string            // folder of ca.pem, tls.crt and tls.key, which are also good for a service at 127.0.0.1
	People       map[string]Claims // who can log in on its page. Nil: it knows everybody as Jane Doe, and sends them back at once
	Claims       Claims            // of each ID token, in place of what it would say
	Answer       url.Values        // what people are sent back with, in place of what it would say

	inner oidctest.Server
	key   *ecdsa.PrivateKey
	mu    sync.Mutex
	codes map[string]login // a code is good once
}

// Claims are members of an ID token.
type Claims map[string]any

// login is somebody who logged in, and what the service asked for then.
type login struct {
	asked  url.Values
	claims Claims
}

// New starts an issuer, which ends with the test.
func New(tb testing.TB) *Issuer {
	tb.Helper()
	i := &Issuer{Certificates: tb.TempDir(), codes: map[string]login{}}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	if err := registrytest.Certificate(i.Certificates, "issuer"); err != nil {
		tb.Fatal(err)
	}
	pair, err := tls.LoadX509KeyPair(filepath.Join(i.Certificates, "tls.crt"), filepath.Join(i.Certificates, "tls.key"))
	if err != nil {
		tb.Fatal(err)
	}
	i.key = key
	i.inner.PublicKeys = []oidctest.PublicKey{{PublicKey: key.Public(), KeyID: "k", Algorithm: "ES256"}}
	server := httptest.NewUnstartedServer(i.handler())
	server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	server.StartTLS()
	tb.Cleanup(server.Close)
	i.URL = strings.Replace(server.URL, "127.0.0.1", "localhost", 1)
	i.inner.SetIssuer(i.URL)
	return i
}

func (i *Issuer) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(map[string]string{ // fails if the caller is gone
			"issuer": i.URL, "jwks_uri": i.URL + "/keys", "authorization_endpoint": i.URL + "/authorize", "token_endpoint": i.URL + "/exchange",
		})
	})
	mux.HandleFunc("GET /authorize", i.authorize)
	mux.HandleFunc("POST /login", i.login)
	mux.HandleFunc("POST /exchange", i.exchange)
	mux.Handle("/", &i.inner)
	return mux
}

// authorize asks who somebody is, or sends them back at once.
func (i *Issuer) authorize(w http.ResponseWriter, r *http.Request) {
	if i.People == nil {
		i.back(w, r, r.URL.Query(), Claims{"sub": "7", "name": "Jane Doe", "groups": []string{"release"}, "picture": "not stored"})
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_ = page.Execute(w, r.URL.RawQuery) // fails if the person is gone
}

// login answers the form of that page.
func (i *Issuer) login(w http.ResponseWriter, r *http.Request) {
	asked, err := url.ParseQuery(r.PostFormValue("asked"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	claims, known := i.People[r.PostFormValue("name")]
	switch {
	case r.PostForm.Has("cancel"):
		back := url.Values{"error": {"access_denied"}, "state": {asked.Get("state")}, "iss": {i.URL}}
		http.Redirect(w, r, asked.Get("redirect_uri")+"?"+back.Encode(), http.StatusSeeOther) //nolint:gosec // to the service of a test
	case !known:
		http.Error(w, "nobody has this name here", http.StatusForbidden)
	default:
		i.back(w, r, asked, claims)
	}
}

// back sends somebody who logged in back, with a code.
func (i *Issuer) back(w http.ResponseWriter, r *http.Request, asked url.Values, claims Claims) {
	i.mu.Lock()
	defer i.mu.Unlock()
	code := rand.Text()
	i.codes[code] = login{asked, claims}
	answer := url.Values{"code": {code}, "state": {asked.Get("state")}, "iss": {i.URL}}
	for name, values := range i.Answer {
		answer[name] = values
	}
	http.Redirect(w, r, asked.Get("redirect_uri")+"?"+answer.Encode(), http.StatusSeeOther) //nolint:gosec // to the service of a test
}

// exchange gives the ID token for a code to the client that asked for it, once.
func (i *Issuer) exchange(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	defer i.mu.Unlock()
	id, secret, _ := r.BasicAuth()
	of, known := i.codes[r.FormValue("code")]
	delete(i.codes, r.FormValue("code"))
	w.Header().Set("Content-Type", "application/json")
	if !known || id != Client || secret != Secret || r.FormValue("redirect_uri") != of.asked.Get("redirect_uri") ||
		oauth2.S256ChallengeFromVerifier(r.FormValue("code_verifier")) != of.asked.Get("code_challenge") {
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprint(w, `{"error":"invalid_grant"}`)
		return
	}
	now := time.Now()
	claims := Claims{"iss": i.URL, "aud": Client, "nonce": of.asked.Get("nonce"), "iat": now.Unix(), "exp": now.Add(time.Minute).Unix()}
	for _, more := range []Claims{of.claims, i.Claims} {
		for name, value := range more {
			claims[name] = value
		}
	}
	text, err := json.Marshal(claims)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	_ = json.NewEncoder(w).Encode(map[string]any{ // fails if the caller is gone
		"access_token": "a", "token_type": "Bearer", "id_token": oidctest.SignIDToken(i.key, "k", "ES256", string(text)),
	})
}
