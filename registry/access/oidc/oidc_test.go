package oidc_test

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"encoding/pem"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coreos/go-oidc/v3/oidc/oidctest"
	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/access/oidc"
	"mlpromote.dev/mlpromote/registry/storage"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// issuer is an issuer of tokens over HTTPS, with the Identifier of a service that trusts it.
type issuer struct {
	*oidc.Identifier
	inner  *oidctest.Server
	server *httptest.Server
	key    *ecdsa.PrivateKey
	asked  atomic.Int64 // requests
	down   atomic.Bool
	set    atomic.Pointer[[]byte]        // its keys; nil: that of inner
	hung   atomic.Pointer[chan struct{}] // answers wait until it is closed; nil: they do not
	now    atomic.Pointer[time.Time]
	log    bytes.Buffer
}

// newIssuer trusts an issuer by a file with the rules, and what else it says.
func newIssuer(t testing.TB, principal string) *issuer {
	t.Helper()
	i := &issuer{inner: &oidctest.Server{}}
	i.at(noon)
	i.rotate(t)
	i.server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		i.asked.Add(1)
		if hung := i.hung.Load(); hung != nil {
			<-*hung
		}
		if i.down.Load() {
			http.Error(w, "secret of the issuer", http.StatusBadGateway)
			return
		}
		if set := i.set.Load(); set != nil && r.URL.Path == "/keys" {
			_, _ = w.Write(*set)
			return
		}
		i.inner.ServeHTTP(w, r)
	}))
	i.server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, 0)
	i.server.StartTLS()
	t.Cleanup(i.server.Close)
	i.inner.SetIssuer(i.server.URL)
	dir := t.TempDir()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: i.server.Certificate().Raw})
	text := "issuers:\n  - issuer: " + i.server.URL + "\n    audience: registry\n    ca: ca.pem\n" + principal + "    rules:\n" + rules
	for name, data := range map[string][]byte{"ca.pem": ca, "access.yaml": []byte(text)} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c, err := oidc.Load(filepath.Join(dir, "access.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	i.Identifier = oidc.New(c, func() time.Time { return *i.now.Load() }, slog.New(slog.NewTextHandler(&i.log, nil)))
	return i
}

func (i *issuer) at(now time.Time) { i.now.Store(&now) }

// rotate gives the issuer another key, and no other.
func (i *issuer) rotate(t testing.TB) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	i.key = key
	i.inner.PublicKeys = []oidctest.PublicKey{{PublicKey: key.Public(), KeyID: i.kid(), Algorithm: "ES256"}}
}

// kid names the present key.
func (i *issuer) kid() string { return i.key.X.String() }

// token signs claims, and what every token has besides.
func (i *issuer) token(t testing.TB, key crypto.Signer, claims map[string]any) string {
	t.Helper()
	all := map[string]any{
		"iss": i.server.URL, "aud": "registry", "sub": "job", "iat": noon.Unix(), "nbf": noon.Unix(), "exp": noon.Add(5 * time.Minute).Unix(),
	}
	for name, value := range claims {
		if value == nil {
			delete(all, name)
		} else {
			all[name] = value
		}
	}
	text, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	return oidctest.SignIDToken(key, i.kid(), "ES256", string(text))
}

const rules = `      - match: {repository: "acme/*", ref: "refs/heads/**"}
        grants: [{allow: [push], environment: staging, model: "vision/**"}]
      - match: {ref_protected: "true"}
        grants: [{allow: [promote], environment: prod, model: "vision/**"}]
      - match: {ref: "refs/heads/main", event_name: workflow_run, job: comment}
        grants: [{allow: [read], environment: prod, model: "**"}]
      - match: {ref: "refs/heads/main", environment: review}
        grants: [{allow: [verify], environment: staging, model: "**"}]
      - match: {groups: ml-team}
        grants: [{allow: [approve], environment: prod, model: "**"}]
      - match: {sub: "system:serviceaccount:serving:*"}
        grants: [{allow: [read], environment: prod, model: "**"}]
`

func TestIdentify(t *testing.T) {
	t.Parallel()
	i := newIssuer(t, "    principal: \"ci:{sub}/{repository}\"\n")
	for name, c := range map[string]struct {
		claims map[string]any
		may    []storage.Permission
		says   string // of a refusal
	}{
		"a job":             {map[string]any{"repository": "acme/vision", "ref": "refs/heads/feature/x"}, []storage.Permission{"push"}, ""},
		"a protected job":   {map[string]any{"repository": "acme/vision", "ref": "refs/heads/main", "ref_protected": "true"}, []storage.Permission{"push", "promote"}, ""},
		"true is \"true\"":  {map[string]any{"repository": "acme/vision", "ref_protected": true}, []storage.Permission{"promote"}, ""},
		"one of the groups": {map[string]any{"repository": "x", "groups": []string{"all", "ml-team"}}, []storage.Permission{"approve"}, ""},
		"a service account": {map[string]any{"repository": "x", "sub": "system:serviceaccount:serving:node"}, []storage.Permission{"read"}, ""},
		"another account":   {map[string]any{"repository": "x", "sub": "system:serviceaccount:default:node"}, nil, "no rule in access.yaml matches it"},
		"a pull request's job with the ref of its base": {map[string]any{"repository": "acme/vision", "ref": "refs/heads/main", "event_name": "pull_request_target"}, nil, "no rule in access.yaml matches it"},
		"a job that follows one":                        {map[string]any{"repository": "acme/vision", "ref": "refs/heads/main", "event_name": "workflow_run"}, nil, "no rule in access.yaml matches it"},
		"a job after a comment":                         {map[string]any{"repository": "acme/vision", "ref": "refs/heads/main", "ref_protected": "true", "event_name": "issue_comment"}, nil, "no rule in access.yaml matches it"},
		"a merge request":                               {map[string]any{"repository": "acme/vision", "ref_protected": "true", "pipeline_source": "merge_request_event"}, nil, "no rule in access.yaml matches it"},
		"a job after a push":                            {map[string]any{"repository": "acme/vision", "ref": "refs/heads/main", "event_name": "push"}, []storage.Permission{"push"}, ""},
		"a rule that names no branch":                   {map[string]any{"repository": "acme/vision", "ref": "refs/heads/main", "event_name": "workflow_run", "groups": "ml-team"}, []storage.Permission{"approve"}, ""},
		"a rule that names the trigger":                 {map[string]any{"repository": "acme/vision", "ref": "refs/heads/main", "event_name": "workflow_run", "job": "comment"}, []storage.Permission{"read"}, ""},
		"a rule with an environment":                    {map[string]any{"repository": "acme/vision", "ref": "refs/heads/main", "event_name": "pull_request_target", "environment": "review"}, []storage.Permission{"verify"}, ""},
		"another owner":                                 {map[string]any{"repository": "mallory/vision", "ref": "refs/heads/main"}, nil, "no rule in access.yaml matches it"},
		"below the owner":                               {map[string]any{"repository": "acme/vision/x", "ref": "refs/heads/main"}, nil, "no rule in access.yaml matches it"},
		"a tag":                                         {map[string]any{"repository": "acme/vision", "ref": "refs/tags/v1"}, nil, "no rule in access.yaml matches it"},
		"one of two claims":                             {map[string]any{"repository": "acme/vision"}, nil, "no rule in access.yaml matches it"},
		"false":                                         {map[string]any{"repository": "acme/vision", "ref_protected": false}, nil, "no rule in access.yaml matches it"},
		"a number":                                      {map[string]any{"repository": "acme/vision", "ref_protected": 1}, nil, "no rule in access.yaml matches it"},
		"an object":                                     {map[string]any{"repository": "acme/vision", "groups": map[string]string{"ml-team": "ml-team"}}, nil, "no rule in access.yaml matches it"},
		"another group":                                 {map[string]any{"repository": "x", "groups": []string{"ml-teams"}}, nil, "no rule in access.yaml matches it"},
		"no claim for a name":                           {map[string]any{"ref_protected": "true"}, nil, `no claim "repository"`},
		"a line in a name":                              {map[string]any{"repository": "x\ny", "ref_protected": "true"}, nil, `no claim "repository"`},
		"a list in a name":                              {map[string]any{"repository": []string{"x", "y"}, "ref_protected": "true"}, nil, `no claim "repository"`},
		"a long name":                                   {map[string]any{"repository": strings.Repeat("x", 300), "ref_protected": "true"}, nil, `no claim "repository"`},
	} {
		p, err := i.Identify(t.Context(), i.token(t, i.key, c.claims))
		if c.says != "" {
			if registry.CodeOf(err) != registry.CodeUnauthenticated || !strings.Contains(err.Error(), c.says) || len(p.Grants) != 0 {
				t.Errorf("%s: %+v, error %v, want %q", name, p, err, c.says)
			}
			continue
		}
		sub, repository := "job", c.claims["repository"].(string)
		if s, ok := c.claims["sub"].(string); ok {
			sub = s
		}
		if err != nil || p.Name != "ci:"+sub+"/"+repository {
			t.Errorf("%s: %+v, error %v", name, p, err)
		}
		for _, permission := range storage.Permissions() {
			want := false
			for _, may := range c.may {
				want = want || may == permission
			}
			if p.MayAnywhere(permission) != want {
				t.Errorf("%s: may %s: %t, want %t", name, permission, !want, want)
			}
		}
	}
	if asked := i.asked.Load(); asked != 2 {
		t.Errorf("the issuer was asked %d times, want twice: for its document and its keys", asked)
	}
}

func TestDefaultName(t *testing.T) {
	t.Parallel()
	i := newIssuer(t, "")
	p, err := i.Identify(t.Context(), i.token(t, i.key, map[string]any{"ref_protected": "true", "sub": "alice"}))
	if err != nil || p.Name != "oidc:"+i.server.URL+"#alice" {
		t.Errorf("%+v, error %v", p, err)
	}
}

// symmetric signs as somebody who has only what is public.
func symmetric(t *testing.T, key []byte, claims map[string]any) string {
	t.Helper()
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.HS256, Key: key}, nil)
	if err != nil {
		t.Fatal(err)
	}
	token, err := jwt.Signed(signer).Claims(claims).Serialize()
	if err != nil {
		t.Fatal(err)
	}
	return token
}

func TestIdentifyRefuses(t *testing.T) {
	t.Parallel()
	i := newIssuer(t, "")
	stranger, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	in := map[string]any{"ref_protected": "true"}
	with := func(name string, value any) map[string]any {
		return map[string]any{"ref_protected": "true", name: value}
	}
	good := i.token(t, i.key, in)
	parts := strings.Split(good, ".")
	public, err := i.key.PublicKey.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	claims := map[string]any{"iss": i.server.URL, "aud": "registry", "sub": "x", "ref_protected": "true", "exp": noon.Add(time.Hour).Unix()}
	for name, c := range map[string]struct{ token, says string }{
		"another key":      {i.token(t, stranger, in), "failed to verify"},
		"another audience": {i.token(t, i.key, with("aud", "other")), `expected audience "registry"`},
		"no audience":      {i.token(t, i.key, with("aud", nil)), "expected audience"},
		"expired":          {i.token(t, i.key, with("exp", noon.Add(-time.Minute).Unix())), "expired on 2026-11-21 11:59:00"},
		"without end":      {i.token(t, i.key, with("exp", nil)), "it has no exp"},
		"valid in an hour": {i.token(t, i.key, with("nbf", noon.Add(time.Hour).Unix())),
			"its nbf is 2026-11-21 13:00:00, but the time here is 2026-11-21 12:00:00: clocks may differ by at most 30s"},
		"valid in 31 s":        {i.token(t, i.key, with("nbf", noon.Add(31*time.Second).Unix())), "its nbf is"},
		"issued in the future": {i.token(t, i.key, with("iat", noon.Add(31*time.Second).Unix())), "its iat is"},
		"no date":              {i.token(t, i.key, with("iat", "now")), "is refused"},
		"for several, issued to another": {i.token(t, i.key, map[string]any{"ref_protected": "true",
			"aud": []string{"other", "registry"}, "azp": "other"}), `its azp is "other": want "registry"`},
		"for several, issued to a list": {i.token(t, i.key, map[string]any{"ref_protected": "true",
			"aud": []string{"other", "registry"}, "azp": []string{"registry", "other"}}), "its azp is"},
		"another issuer":                       {i.token(t, i.key, with("iss", "https://example.com")), `does not trust the issuer "https://example.com"`},
		"no issuer":                            {i.token(t, i.key, with("iss", nil)), `does not trust the issuer ""`},
		"a slash more":                         {i.token(t, i.key, with("iss", i.server.URL+"/")), "does not trust the issuer"},
		"no signature":                         {parts[0] + "." + parts[1] + ".", "failed to verify"},
		"no algorithm":                         {"eyJhbGciOiJub25lIn0." + parts[1] + ".", "not a JWT with an asymmetric signature"},
		"the public key as one that is shared": {symmetric(t, public, claims), "not a JWT with an asymmetric signature"},
		"another payload":                      {parts[0] + "." + strings.Split(i.token(t, i.key, with("sub", "root")), ".")[1] + "." + parts[2], "failed to verify"},
		"rubbish":                              {"a.b.c", "not a JWT"},
		"nothing":                              {"", "not a JWT"},
	} {
		p, err := i.Identify(t.Context(), c.token)
		if registry.CodeOf(err) != registry.CodeUnauthenticated || !strings.Contains(err.Error(), c.says) || p.Name != "" {
			t.Errorf("%s: %+v, error %v, want %q", name, p, err, c.says)
			continue
		}
		if c.token != "" && strings.Contains(err.Error(), c.token) {
			t.Errorf("%s: the error tells the token: %v", name, err)
		}
	}
	if _, err := i.Identify(t.Context(), good); err != nil {
		t.Errorf("the token that the others are made of: %v", err)
	}
	for name, claims := range map[string]map[string]any{
		"expired 20 s ago":           with("exp", noon.Add(-20*time.Second).Unix()),
		"valid in 30 s":              with("nbf", noon.Add(30*time.Second).Unix()),
		"issued in 30 s":             with("iat", noon.Add(30*time.Second).Unix()),
		"issued to the one audience": with("azp", "client"),
		"for several, issued to us":  {"ref_protected": "true", "aud": []string{"other", "registry"}, "azp": "registry"},
		"for several, without azp":   with("aud", []string{"other", "registry"}),
		"without nbf and iat":        {"ref_protected": "true", "nbf": nil, "iat": nil},
	} {
		if _, err := i.Identify(t.Context(), i.token(t, i.key, claims)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// An issuer may be away when the service starts, and is not asked by every token.
func TestIssuerIsAway(t *testing.T) {
	t.Parallel()
	i := newIssuer(t, "")
	token := i.token(t, i.key, map[string]any{"ref_protected": "true"})
	i.down.Store(true)
	for range 20 {
		_, err := i.Identify(t.Context(), token)
		if registry.CodeOf(err) != registry.CodeUnavailable || strings.Contains(err.Error(), "502") {
			t.Fatalf("error %v, want CodeUnavailable and no more", err)
		}
	}
	if asked := i.asked.Load(); asked != 1 || !strings.Contains(i.log.String(), "502") {
		t.Errorf("it was asked %d times, want once; the log says %s", asked, i.log.String())
	}
	i.down.Store(false)
	i.at(noon.Add(oidc.FetchInterval))
	if _, err := i.Identify(t.Context(), token); err != nil {
		t.Errorf("when it is back: %v", err)
	}
	// Its keys are known, so it may go again.
	i.down.Store(true)
	i.at(noon.Add(time.Minute))
	if _, err := i.Identify(t.Context(), token); err != nil {
		t.Errorf("with keys that are known: %v", err)
	}
}

func TestKeysChange(t *testing.T) {
	t.Parallel()
	i := newIssuer(t, "")
	token := func() string {
		return i.token(t, i.key, map[string]any{"ref_protected": "true", "exp": noon.Add(24 * time.Hour).Unix()})
	}
	old := token()
	if _, err := i.Identify(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	i.rotate(t)
	i.at(noon.Add(oidc.FetchInterval))
	if _, err := i.Identify(t.Context(), token()); err != nil {
		t.Errorf("a new key: %v", err)
	}
	// Tokens of keys that nobody has make the issuer be asked now and then.
	before := i.asked.Load()
	i.rotate(t)
	forged := token()
	i.inner.PublicKeys = nil
	for range 50 {
		if _, err := i.Identify(t.Context(), forged); registry.CodeOf(err) != registry.CodeUnauthenticated {
			t.Fatalf("an unknown key: %v", err)
		}
	}
	if asked := i.asked.Load() - before; asked > 1 {
		t.Errorf("50 forged tokens made the issuer be asked %d times", asked)
	}
	// A key that the issuer took back is not believed for long.
	i.at(noon.Add(oidc.KeysMaxAge + time.Minute))
	if _, err := i.Identify(t.Context(), old); registry.CodeOf(err) != registry.CodeUnauthenticated {
		t.Errorf("a key that was taken back: %v", err)
	}
}

func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	i := newIssuer(t, "")
	token := i.token(t, i.key, map[string]any{"ref_protected": "true"})
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			if _, err := i.Identify(t.Context(), token); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if asked := i.asked.Load(); asked != 2 {
		t.Errorf("the issuer was asked %d times, want twice", asked)
	}
}

// hang makes the issuer hold back its answers until release is called.
func (i *issuer) hang(t *testing.T) (release func()) {
	t.Helper()
	held := make(chan struct{})
	i.hung.Store(&held)
	release = sync.OnceFunc(func() { i.hung.Store(nil); close(held) })
	t.Cleanup(release) // before the server is closed, which waits for its answers
	return release
}

// begun waits until the issuer received a number of requests.
func (i *issuer) begun(t *testing.T, times int64) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); i.asked.Load() < times; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("the issuer was asked %d times in a minute, want %d", i.asked.Load(), times)
		}
	}
}

// All callers that wait for an issuer share one answer, and no request follows at once.
func TestIssuerHangs(t *testing.T) {
	t.Parallel()
	i := newIssuer(t, "")
	token := i.token(t, i.key, map[string]any{"ref_protected": "true"})
	i.down.Store(true)
	release := i.hang(t)
	errs := make(chan error)
	for range 16 {
		go func() { _, err := i.Identify(t.Context(), token); errs <- err }()
	}
	i.begun(t, 1)
	leaving, leave := context.WithCancel(t.Context())
	leave()
	if _, err := i.Identify(leaving, token); err == nil {
		t.Error("a canceled caller was accepted")
	}
	i.at(noon.Add(time.Minute)) // the request takes longer than FetchInterval
	release()
	for range 16 {
		if err := <-errs; registry.CodeOf(err) != registry.CodeUnavailable {
			t.Errorf("error %v, want CodeUnavailable", err)
		}
	}
	if _, err := i.Identify(t.Context(), token); registry.CodeOf(err) != registry.CodeUnavailable {
		t.Errorf("after the answer: error %v, want CodeUnavailable", err)
	}
	if asked := i.asked.Load(); asked != 1 {
		t.Errorf("the issuer was asked %d times, want once", asked)
	}
}

// Known keys are renewed before they are too old, and callers do not wait for that.
func TestKnownKeysDoNotWait(t *testing.T) {
	t.Parallel()
	i := newIssuer(t, "")
	token := i.token(t, i.key, map[string]any{"ref_protected": "true", "exp": noon.Add(24 * time.Hour).Unix()})
	if _, err := i.Identify(t.Context(), token); err != nil {
		t.Fatal(err)
	}
	release := i.hang(t)
	i.at(noon.Add(oidc.KeysMaxAge - time.Second))
	for range 3 {
		if _, err := i.Identify(t.Context(), token); err != nil {
			t.Errorf("while the issuer hangs: %v", err)
		}
	}
	i.begun(t, 3) // for its document a second time
	release()
	i.begun(t, 4)
	i.at(noon.Add(oidc.KeysMaxAge))
	if _, err := i.Identify(t.Context(), token); err != nil {
		t.Errorf("with keys that were renewed: %v", err)
	}
	if asked := i.asked.Load(); asked != 4 {
		t.Errorf("the issuer got %d requests, want two for its document and two for its keys", asked)
	}
}

// Keys of unknown types do not keep the others from being used.
func TestKeysOfUnknownTypes(t *testing.T) {
	t.Parallel()
	i := newIssuer(t, "")
	set, err := json.Marshal(map[string]any{"keys": []any{
		map[string]string{"kty": "AKP", "kid": "new"}, jose.JSONWebKey{Key: i.key.Public(), KeyID: i.kid()},
	}})
	if err != nil {
		t.Fatal(err)
	}
	i.set.Store(&set)
	if _, err := i.Identify(t.Context(), i.token(t, i.key, map[string]any{"ref_protected": "true"})); err != nil {
		t.Error(err)
	}
}

// A certificate that no CA of the issuer's signed is not the issuer.
func TestIssuerOfAnotherCA(t *testing.T) {
	t.Parallel()
	i := newIssuer(t, "")
	c := oidc.Config{Issuers: []oidc.Issuer{{URL: i.server.URL, Audience: "registry", Rules: []oidc.Rule{{
		Match: map[string]string{"sub": "job"}, Grants: []storage.Grant{{Permissions: []storage.Permission{"read"}, Environment: "**", Model: "**"}}}}}}}
	_, err := oidc.New(c, nil, nil).Identify(t.Context(), i.token(t, i.key, nil))
	if registry.CodeOf(err) != registry.CodeUnavailable || i.asked.Load() != 0 {
		t.Errorf("error %v, want CodeUnavailable", err)
	}
}

// Whatever comes, only what the issuer signed lets anybody in.
func FuzzIdentify(f *testing.F) {
	i := newIssuer(f, "")
	good := i.token(f, i.key, map[string]any{"ref_protected": "true"})
	f.Add(good)
	f.Add("eyJhbGciOiJub25lIn0.e30.")
	f.Add(strings.Replace(good, ".", "..", 1))
	f.Fuzz(func(t *testing.T, token string) {
		p, err := i.Identify(t.Context(), token)
		stripped := strings.Map(func(r rune) rune {
			if strings.ContainsRune(" \t\r\n", r) {
				return -1
			}
			return r
		}, token)
		// The last character of a signature has bits that say nothing.
		same := len(stripped) == len(good) && strings.HasPrefix(stripped, good[:len(good)-1])
		switch {
		case err == nil && !same:
			t.Fatalf("%q lets in %+v", token, p)
		case err != nil && registry.CodeOf(err) != registry.CodeUnauthenticated:
			t.Fatalf("%q: %v", token, err)
		}
	})
}
