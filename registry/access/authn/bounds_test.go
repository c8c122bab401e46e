package authn_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/access"
	"mlpromote.dev/mlpromote/registry/access/authn"
	"mlpromote.dev/mlpromote/registry/storage"
)

// Refusals under /v2 have the form of the protocol, and all others are problems.
func TestFormOfRefusals(t *testing.T) {
	t.Parallel()
	h, err := (authn.OriginCheck{Hosts: access.Hosts{Names: []string{"registry.example.com"}}}).Protect(http.NotFoundHandler())
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"/v2": "application/json", "/v2/": "application/json", "/v2/staging/x/tags/list": "application/json",
		"/v2x": "application/problem+json", "/": "application/problem+json", "/api/v1/heads": "application/problem+json",
	} {
		r := httptest.NewRequest(http.MethodGet, path, nil)
		r.Host = "evil.example"
		recorder := httptest.NewRecorder()
		h.ServeHTTP(recorder, r)
		if got := recorder.Header().Get("Content-Type"); recorder.Code != http.StatusForbidden || got != want {
			t.Errorf("%s: %d as %s, want 403 as %s", path, recorder.Code, got, want)
		}
	}
}

// A credential has one header of up to 16 KiB.
func TestCredentialBounds(t *testing.T) {
	t.Parallel()
	w := setup(t)
	for name, c := range map[string]struct {
		headers []string
		says    string
	}{
		"none":            {nil, "none was sent"},
		"two":             {[]string{"Bearer " + w.text, "Bearer " + w.text}, "2 Authorization headers: want one"},
		"the longest":     {[]string{"Bearer mlp_" + strings.Repeat("a", 16<<10-len("Bearer mlp_"))}, "did not issue the token"},
		"a byte too many": {[]string{"Bearer mlp_" + strings.Repeat("a", 16<<10-len("Bearer mlp_")+1)}, "has 16385 bytes: want at most 16384"},
		"no token":        {[]string{"Bearer "}, "neither Bearer TOKEN nor Basic"},
		"another scheme":  {[]string{"Digest x"}, "neither Bearer TOKEN nor Basic"},
		"no password":     {[]string{basic("me", "")}, "Basic without a password"},
		"no base64":       {[]string{"Basic !"}, "Basic without a password"},
		"a user alone":    {[]string{"Basic bWU="}, "Basic without a password"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := httptest.NewRequest(http.MethodGet, "/api/v1/heads", nil)
			r.Header["Authorization"] = c.headers
			recorder := httptest.NewRecorder()
			w.API(w.inner).ServeHTTP(recorder, r)
			problem := decode[struct {
				Code   registry.Code
				Detail string
			}](t, recorder)
			if recorder.Code != http.StatusUnauthorized || problem.Code != registry.CodeUnauthenticated || !strings.Contains(problem.Detail, c.says) {
				t.Errorf("%d %s, want 401 and %q", recorder.Code, recorder.Body, c.says)
			}
		})
	}
}

// A token is issued for up to a hundred scopes.
func TestMostScopes(t *testing.T) {
	t.Parallel()
	w := setup(t)
	for name, query := range map[string]string{
		"in one value":   "scope=" + url.QueryEscape(strings.Repeat("repository:a/b:pull ", 100)),
		"in many values": strings.Repeat("scope=repository:a/b:pull&", 100),
	} {
		if got := get(w.Registry(w.inner), authn.TokenPath+"?"+query, "Bearer "+w.text); got.Code != http.StatusOK {
			t.Errorf("%s: %d %s, want 200", name, got.Code, got.Body)
		}
	}
}

// Clients begin without a credential, which is a matter of debugging. A wrong one is not.
func TestLogOfRefusals(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ authorization, want string }{
		"no credential": {"", "level=DEBUG msg=refused"}, "a wrong one": {"Bearer mlp_x_y", "level=INFO msg=refused"},
	} {
		w := setup(t)
		get(w.Registry(w.inner), "/v2/", c.authorization)
		get(w.API(w.inner), "/api/v1/heads", c.authorization)
		if got := strings.Count(w.log.String(), c.want); got != 2 {
			t.Errorf("%s: %d lines with %q in the log, want 2:\n%s", name, got, c.want, w.log.String())
		}
	}
}

// What an issuer's bearer got from this service ends with the rules under which it was let in. What a token
// of this service got does not depend on them.
func TestTokensEndWithTheRules(t *testing.T) {
	t.Parallel()
	const foreign = "eyJhbGciOiJSUzI1NiJ9.e30.c2ln"
	rules := "first"
	w := setup(t, func(c *authn.Config) {
		c.Rules = func() string { return rules }
		c.Identify = func(context.Context, string) (storage.Principal, error) {
			return storage.Principal{Name: "ci:x",
				Grants: []storage.Grant{{Permissions: []storage.Permission{storage.PermissionRead}, Environment: "**", Model: "**"}}}, nil
		}
	})
	const repository = "staging/vision/digits"
	ofIssuer, _ := w.ask(t, basic("ci", foreign), "repository:"+repository+":pull")
	own, _ := w.ask(t, basic("me", w.text), "repository:"+repository+":pull")
	for _, token := range []string{ofIssuer, own} {
		if err := w.may(t, token, repository, storage.PermissionRead); err != nil {
			t.Errorf("under the same rules: %v", err)
		}
	}
	rules = "second"
	if err := w.may(t, ofIssuer, repository, storage.PermissionRead); registry.CodeOf(err) != registry.CodeUnauthenticated ||
		!strings.Contains(err.Error(), "the access rules changed") {
		t.Errorf("an issuer's bearer under other rules: error %v, want CodeUnauthenticated", err)
	}
	if err := w.may(t, own, repository, storage.PermissionRead); err != nil {
		t.Errorf("a token of this service under other rules: %v", err)
	}
}
