package authn_test

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/access"
	"mlpromote.dev/mlpromote/registry/access/authn"
	"mlpromote.dev/mlpromote/registry/policy"
	"mlpromote.dev/mlpromote/registry/storage"
)

// ask gets a token as an OCI client does.
func (w *world) ask(t testing.TB, authorization string, scopes ...string) (string, *httptest.ResponseRecorder) {
	t.Helper()
	query := url.Values{"service": {authn.Service}, "scope": scopes, "account": {"me"}, "client_id": {"test"}}
	got := get(w.Registry(w.inner), authn.TokenPath+"?"+query.Encode(), authorization)
	if got.Code != http.StatusOK {
		return "", got
	}
	answer := decode[struct {
		Token       string `json:"token"`
		AccessToken string `json:"access_token"`
		ExpiresIn   int    `json:"expires_in"`
		IssuedAt    string `json:"issued_at"`
	}](t, got)
	issued, err := time.Parse(time.RFC3339, answer.IssuedAt)
	if err != nil || answer.Token != answer.AccessToken || answer.ExpiresIn != 300 ||
		!issued.Equal(*w.now.Load()) || got.Header().Get("Cache-Control") != "no-store" {
		t.Errorf("%v %s", got.Header(), got.Body)
	}
	return answer.Token, got
}

// may asks the registry's door for the bearer of a token.
func (w *world) may(t testing.TB, token, repository string, permission storage.Permission) (err error) {
	t.Helper()
	doors := access.Repositories{Environments: policy.Environments{Registry: "local", List: []policy.Environment{
		{Name: "staging"}, {Name: "prod", From: "staging", Require: []string{"signature"}}}}}
	get(w.Registry(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		err = doors.Authorize(r.Context(), repository, permission)
	})), "/v2/", "Bearer "+token)
	return err
}

func TestTokensOfClients(t *testing.T) {
	t.Parallel()
	w := setup(t)
	token, _ := w.ask(t, basic("me", w.text),
		"repository:staging/vision/digits:pull,push repository:prod/vision/digits:pull,push", "repository:staging/text/mood:push")
	for _, c := range []struct {
		repository string
		permission storage.Permission
		code       registry.Code // empty: allowed
	}{
		{"", storage.PermissionRead, ""},
		{"staging/vision/digits", storage.PermissionRead, ""},
		{"staging/vision/digits", storage.PermissionPush, ""},
		{"prod/vision/digits", storage.PermissionRead, ""},
		{"prod/vision/digits", storage.PermissionPush, registry.CodeForbidden},                     // asked for and not granted
		{"staging/text/mood", storage.PermissionPush, registry.CodeForbidden},                      // as above
		{"staging/text/mood", storage.PermissionRead, registry.CodeUnauthenticated},                // not asked for
		{"staging/vision/digits", storage.PermissionAdminister, registry.CodeUnauthenticated},      // as above
		{"staging/vision/digits/sources", storage.PermissionRead, registry.CodeUnauthenticated},    // as above
		{"staging/vision/digitsx", storage.PermissionRead, registry.CodeUnauthenticated},           // as above
		{"staging/vision", storage.PermissionRead, registry.CodeUnauthenticated},                   // as above
		{"elsewhere/vision/digits", storage.PermissionRead, registry.CodeUnauthenticated},          // as above
		{"prod/vision/digits/sources/x", storage.PermissionPush, registry.CodeUnauthenticated},     // as above
		{"staging/vision/digits", storage.PermissionPromote, registry.CodeUnauthenticated},         // cannot be asked for
		{"staging/vision/digits", storage.Permission("unknown"), registry.CodeUnauthenticated},     // as above
		{"staging/vision/digits", storage.PermissionVerify, registry.CodeUnauthenticated},          // as above
		{"staging/vision/digits", storage.PermissionApprove, registry.CodeUnauthenticated},         // as above
		{"staging/vision/letters", storage.PermissionPush, registry.CodeUnauthenticated},           // not asked for, would be granted
		{"prod/vision/digits", storage.PermissionAdminister, registry.CodeUnauthenticated},         // not asked for
		{"staging/vision/digits/sources", storage.PermissionPush, registry.CodeUnauthenticated},    // as above
		{"staging/Vision/digits", storage.PermissionRead, registry.CodeUnauthenticated},            // as above
		{"staging/vision/digits/../letters", storage.PermissionRead, registry.CodeUnauthenticated}, // as above
	} {
		err := w.may(t, token, c.repository, c.permission)
		if c.code == "" && err != nil || c.code != "" && registry.CodeOf(err) != c.code {
			t.Errorf("%s of %q: error %v, want %q", c.permission, c.repository, err, c.code)
		}
	}
	// The API takes it too, for no more than it was narrowed to.
	if p := decode[storage.Principal](t, get(w.API(w.inner), "/api/v1/heads", "Bearer "+token)); p.Name != "token:ci" ||
		p.May(storage.PermissionRead, "prod", "text/mood") || !p.May(storage.PermissionRead, "prod", "vision/digits") {
		t.Errorf("the API is asked by %+v", p)
	}
}

// docker login asks for a token without a scope, and uses it once.
func TestTokenWithoutScope(t *testing.T) {
	t.Parallel()
	w := setup(t)
	for _, scopes := range [][]string{nil, {""}, {"registry:catalog:*"},
		{"repository:staging/vision/digits:fly"}, {"repository(plugin):x:pull"}, {"repository:staging:pull"}} {
		token, got := w.ask(t, basic("me", w.text), scopes...)
		if token == "" {
			t.Fatalf("%q: %d %s", scopes, got.Code, got.Body)
		}
		if err := w.may(t, token, "", storage.PermissionRead); err != nil {
			t.Errorf("%q: %v", scopes, err)
		}
		if err := w.may(t, token, "staging/vision/digits", storage.PermissionRead); registry.CodeOf(err) != registry.CodeUnauthenticated {
			t.Errorf("%q: error %v", scopes, err)
		}
	}
	star, _ := w.ask(t, "Bearer "+w.text, "repository:staging/vision/digits:*")
	for permission, want := range map[storage.Permission]bool{storage.PermissionRead: true,
		storage.PermissionPush: true, storage.PermissionAdminister: false} {
		if err := w.may(t, star, "staging/vision/digits", permission); (err == nil) != want {
			t.Errorf("%s: %v, want %t", permission, err, want)
		}
	}
}

// A token for the catalog lists what its principal may read, and reads nothing. Another token does not list.
func TestTokenForTheCatalog(t *testing.T) {
	t.Parallel()
	w := setup(t)
	catalog, _ := w.ask(t, "Bearer "+w.text, "registry:catalog:*")
	both, _ := w.ask(t, "Bearer "+w.text, "registry:catalog:*", "repository:staging/vision/digits:pull")
	pull, _ := w.ask(t, "Bearer "+w.text, "repository:staging/vision/digits:pull,list", "registry:catalog:delete")
	_, narrow := w.mint(t, "narrow", noon.Add(time.Hour), storage.Grant{Permissions: []storage.Permission{storage.PermissionRead}, Environment: "prod", Model: "vision/*"})
	few, _ := w.ask(t, "Bearer "+narrow, "registry:catalog:*")
	for _, c := range []struct {
		token, repository string
		permission        storage.Permission
		code              registry.Code
	}{
		{catalog, "", storage.PermissionList, ""},
		{catalog, "staging/vision/digits", storage.PermissionList, ""},
		{few, "", storage.PermissionList, ""},
		{few, "prod/vision/digits", storage.PermissionList, ""},
		{few, "prod/text/mood", storage.PermissionList, registry.CodeForbidden},
		{catalog, "staging/vision/digits", storage.PermissionRead, registry.CodeUnauthenticated},
		{both, "staging/vision/digits", storage.PermissionList, ""},
		{both, "staging/vision/digits", storage.PermissionRead, ""},
		{both, "prod/vision/digits", storage.PermissionRead, registry.CodeUnauthenticated},
		{pull, "", storage.PermissionList, registry.CodeUnauthenticated},
		{pull, "staging/vision/digits", storage.PermissionList, registry.CodeUnauthenticated},
	} {
		err := w.may(t, c.token, c.repository, c.permission)
		if c.code == "" && err != nil || c.code != "" && registry.CodeOf(err) != c.code {
			t.Errorf("%s of %q: error %v, want %q", c.permission, c.repository, err, c.code)
		}
	}
}

func TestTokenPathRefuses(t *testing.T) {
	t.Parallel()
	w := setup(t)
	derived, _ := w.ask(t, "Bearer "+w.text)
	for name, c := range map[string]struct {
		authorization, query string
		status               int
		code, says           string
	}{
		"nobody":              {"", "", 401, "UNAUTHORIZED", "none was sent"},
		"a wrong password":    {basic("me", "mlp_x_y"), "", 401, "UNAUTHORIZED", "did not issue the token"},
		"one of its own":      {"Bearer " + derived, "", 401, "UNAUTHORIZED", "not one that was issued here"},
		"another service":     {"Bearer " + w.text, "service=other", 400, "UNSUPPORTED", "want mlpromote"},
		"no actions":          {"Bearer " + w.text, "scope=repository:x", 400, "UNSUPPORTED", "want repository:NAME:ACTION"},
		"no kind":             {"Bearer " + w.text, "scope=:x:pull", 400, "UNSUPPORTED", "want repository:NAME:ACTION"},
		"no repository":       {"Bearer " + w.text, "scope=repository:../x:pull", 400, "UNSUPPORTED", "is not a repository name"},
		"a pattern for one":   {"Bearer " + w.text, "scope=repository:staging/*:pull", 400, "UNSUPPORTED", "is not a repository name"},
		"too much":            {"Bearer " + w.text, "scope=" + url.QueryEscape(strings.Repeat("repository:a/b:pull ", 101)), 400, "UNSUPPORTED", "at most 100"},
		"too much, many":      {"Bearer " + w.text, strings.Repeat("scope=repository:a/b:pull&", 101), 400, "UNSUPPORTED", "at most 100"},
		"nobody with a scope": {"", "scope=repository:staging/vision/digits:pull", 401, "UNAUTHORIZED", "none was sent"},
	} {
		got := get(w.Registry(w.inner), authn.TokenPath+"?"+c.query, c.authorization)
		answer := decode[struct {
			Errors []struct{ Code, Message string }
		}](t, got)
		if got.Code != c.status || len(answer.Errors) != 1 || answer.Errors[0].Code != c.code || !strings.Contains(answer.Errors[0].Message, c.says) {
			t.Errorf("%s: %d %s, want %d %s %q", name, got.Code, got.Body, c.status, c.code, c.says)
		}
		if (got.Header().Get("WWW-Authenticate") != "") != (c.status == 401) {
			t.Errorf("%s: WWW-Authenticate is %q", name, got.Header().Get("WWW-Authenticate"))
		}
	}
	for _, method := range []string{http.MethodPost, http.MethodHead, http.MethodDelete} {
		r := httptest.NewRequest(method, authn.TokenPath, strings.NewReader("grant_type=password&password="+w.text))
		recorder := httptest.NewRecorder()
		if w.Registry(w.inner).ServeHTTP(recorder, r); recorder.Code != http.StatusMethodNotAllowed || recorder.Header().Get("Allow") != "GET" {
			t.Errorf("%s: %d, Allow %q", method, recorder.Code, recorder.Header().Get("Allow"))
		}
	}
}

// A token that a client got ends after minutes, and with the one it was got for.
func TestTokensOfClientsEnd(t *testing.T) {
	t.Parallel()
	end := func(name, says string, do func(t *testing.T, w *world)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t)
			token, _ := w.ask(t, "Bearer "+w.text, "repository:staging/vision/digits:pull")
			if err := w.may(t, token, "staging/vision/digits", storage.PermissionRead); err != nil {
				t.Fatal(err)
			}
			do(t, w)
			err := w.may(t, token, "staging/vision/digits", storage.PermissionRead)
			if registry.CodeOf(err) != registry.CodeUnauthenticated || !strings.Contains(err.Error(), says) {
				t.Errorf("error %v, want %q", err, says)
			}
		})
	}
	end("by time", "outside its lifetime", func(_ *testing.T, w *world) { w.at(noon.Add(authn.Lifetime + time.Minute)) })
	end("before it begins", "outside its lifetime", func(_ *testing.T, w *world) { w.at(noon.Add(-time.Hour)) })
	end("by revocation", "token ci was revoked", func(t *testing.T, w *world) {
		if err := w.db.RevokeToken(t.Context(), w.id, noon); err != nil {
			t.Fatal(err)
		}
	})
	w := setup(t)
	_, short := w.mint(t, "short", noon.Add(time.Minute), storage.Grant{Permissions: storage.Permissions(), Environment: "**", Model: "**"})
	token, _ := w.ask(t, "Bearer "+short, "repository:staging/vision/digits:pull")
	w.at(noon.Add(time.Minute))
	if err := w.may(t, token, "staging/vision/digits", storage.PermissionRead); registry.CodeOf(err) != registry.CodeUnauthenticated ||
		!strings.Contains(err.Error(), "token short expired") {
		t.Errorf("after the token that it was got for: %v", err)
	}
}

// Replicas take each other's tokens; services do not.
func TestReplicasShareTheKey(t *testing.T) {
	t.Parallel()
	w := setup(t)
	token, _ := w.ask(t, "Bearer "+w.text, "repository:staging/vision/digits:pull")
	replica, err := authn.New(t.Context(), w.Config)
	if err != nil {
		t.Fatal(err)
	}
	if got := get(replica.API(w.inner), "/api/v1/heads", "Bearer "+token); got.Code != http.StatusOK {
		t.Errorf("a replica: %d %s", got.Code, got.Body)
	}
	if got := get(setup(t).API(w.inner), "/api/v1/heads", "Bearer "+token); got.Code != http.StatusUnauthorized {
		t.Errorf("another service: %d %s", got.Code, got.Body)
	}
}

// forge makes a token that is like one that the authenticator makes, but for what edit changes.
func (w *world) forge(t testing.TB, key []byte, alg jose.SignatureAlgorithm, edit func(claims map[string]any)) string {
	t.Helper()
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: alg, Key: key}, nil)
	if err != nil {
		t.Fatal(err)
	}
	claims := map[string]any{
		"iss": "mlpromote", "aud": "mlpromote", "sub": "token:ci", "iat": noon.Unix(), "nbf": noon.Unix(), "exp": noon.Add(time.Minute).Unix(),
		"grants": []storage.Grant{{Permissions: []storage.Permission{"administer"}, Environment: "**", Model: "**"}},
	}
	if edit != nil {
		edit(claims)
	}
	token, err := jwt.Signed(signer).Claims(claims).Serialize()
	if err != nil {
		t.Fatal(err)
	}
	return token
}

func TestForgedTokens(t *testing.T) {
	t.Parallel()
	w := setup(t)
	key, err := w.db.Secret(t.Context(), "oci-token-key", []byte("it is there"))
	if err != nil {
		t.Fatal(err)
	}
	set := func(name string, value any) func(map[string]any) {
		return func(claims map[string]any) { claims[name] = value }
	}
	without := func(name string) func(map[string]any) { return func(claims map[string]any) { delete(claims, name) } }
	good := w.forge(t, key, jose.HS256, nil)
	if got := get(w.API(w.inner), "/api/v1/heads", "Bearer "+good); got.Code != http.StatusOK {
		t.Fatalf("the token that the others are made of: %d %s", got.Code, got.Body)
	}
	parts := strings.Split(good, ".")
	encode := func(v any) string {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return base64.RawURLEncoding.EncodeToString(b)
	}
	for name, token := range map[string]string{
		"another key":         w.forge(t, []byte("0123456789abcdef0123456789abcdef"), jose.HS256, nil),
		"another algorithm":   w.forge(t, append(key, key...), jose.HS512, nil),
		"no algorithm":        encode(map[string]string{"alg": "none"}) + "." + parts[1] + ".",
		"no signature":        parts[0] + "." + parts[1] + ".",
		"another payload":     parts[0] + "." + encode(map[string]string{"sub": "x"}) + "." + parts[2],
		"another audience":    w.forge(t, key, jose.HS256, set("aud", "other")),
		"no audience":         w.forge(t, key, jose.HS256, without("aud")),
		"another issuer":      w.forge(t, key, jose.HS256, set("iss", "https://example.com")),
		"no issuer":           w.forge(t, key, jose.HS256, without("iss")),
		"expired":             w.forge(t, key, jose.HS256, set("exp", noon.Add(-time.Minute).Unix())),
		"without end":         w.forge(t, key, jose.HS256, without("exp")),
		"of the future":       w.forge(t, key, jose.HS256, set("nbf", noon.Add(time.Hour).Unix())),
		"of an unknown token": w.forge(t, key, jose.HS256, set("tid", "nothere")),
		"claims of no shape":  w.forge(t, key, jose.HS256, set("grants", "all")),
	} {
		if got := get(w.API(w.inner), "/api/v1/heads", "Bearer "+token); got.Code != http.StatusUnauthorized {
			t.Errorf("%s: %d %s", name, got.Code, got.Body)
		}
	}
	// Nobody acts without a name.
	var reached error
	get(w.API(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		reached = access.Allow(r.Context(), storage.PermissionRead, "prod", "x")
	})), "/api/v1/heads", "Bearer "+w.forge(t, key, jose.HS256, without("sub")))
	if registry.CodeOf(reached) != registry.CodeUnauthenticated {
		t.Errorf("without a subject: %v", reached)
	}
}

func TestChallenge(t *testing.T) {
	t.Parallel()
	w := setup(t)
	external := setup(t, func(c *authn.Config) { c.URL = "https://registry.example.com" })
	request := httptest.NewRequest(http.MethodGet, "http://10.0.0.1:5080/v2/", nil)
	secure := httptest.NewRequest(http.MethodGet, "https://10.0.0.1/v2/", nil)
	for _, c := range []struct {
		gate       *world
		request    *http.Request
		repository string
		permission storage.Permission
		want       string
	}{
		{w, request, "", storage.PermissionRead, `Bearer realm="http://10.0.0.1:5080/v2/token",service="mlpromote"`},
		{w, secure, "a/b", storage.PermissionRead, `Bearer realm="https://10.0.0.1/v2/token",service="mlpromote",scope="repository:a/b:pull"`},
		{external, request, "a/b", storage.PermissionPush, `Bearer realm="https://registry.example.com/v2/token",service="mlpromote",scope="repository:a/b:pull,push"`},
		{external, request, "a/b", storage.PermissionAdminister, `Bearer realm="https://registry.example.com/v2/token",service="mlpromote",scope="repository:a/b:pull,delete"`},
		{external, request, "", storage.PermissionList, `Bearer realm="https://registry.example.com/v2/token",service="mlpromote",scope="registry:catalog:*"`},
	} {
		if got := c.gate.Challenge(c.request, c.repository, c.permission); got != c.want {
			t.Errorf("%s of %s: %s, want %s", c.permission, c.repository, got, c.want)
		}
	}
}

// Whatever a client asks for, it gets no more than its principal has, and of repositories
// that can be.
func FuzzScope(f *testing.F) {
	for _, scope := range []string{
		"repository:staging/vision/digits:pull,push", "repository:prod/x:*",
		"registry:catalog:*", "repository:a:b:c/d:pull", "::", "repository(x):a/b:pull",
		"repository:staging/**:push", "repository:staging/vision/digits:pull repository:prod/vision/digits:delete",
	} {
		f.Add(scope)
	}
	w := setup(f)
	principal := decode[storage.Principal](f, get(w.API(w.inner), "/api/v1/heads", "Bearer "+w.text))
	f.Fuzz(func(t *testing.T, scope string) {
		token, got := w.ask(t, "Bearer "+w.text, scope)
		if token == "" {
			if got.Code != http.StatusBadRequest {
				t.Fatalf("%q: %d %s", scope, got.Code, got.Body)
			}
			return
		}
		narrowed := decode[storage.Principal](t, get(w.API(w.inner), "/api/v1/heads", "Bearer "+token))
		for _, g := range narrowed.Grants {
			if slices.Equal(g.Permissions, []storage.Permission{storage.PermissionList}) {
				if !slices.ContainsFunc(principal.Grants, func(has storage.Grant) bool { return has.Environment == g.Environment && has.Model == g.Model }) {
					t.Fatalf("%q gives %+v", scope, g)
				}
				continue
			}
			if !registry.ValidRepository(g.Environment+"/"+g.Model) || g.Validate() != nil {
				t.Fatalf("%q gives %+v", scope, g)
			}
			for _, p := range storage.Permissions() {
				if narrowed.May(p, g.Environment, g.Model) && !principal.May(p, g.Environment, g.Model) {
					t.Fatalf("%q gives %s of %s in %s, which the principal does not have", scope, p, g.Model, g.Environment)
				}
			}
		}
	})
}
