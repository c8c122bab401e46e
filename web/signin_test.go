package web_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/storage"
	"mlpromote.dev/mlpromote/web"
	"mlpromote.dev/mlpromote/web/page"
)

func withSignIn(c *page.Config) {
	c.SignIn = &page.SignIn{
		Ways:  []page.Way{{Name: "corp", Issuer: "https://id.example.com/realms/a"}},
		Token: "/signin/token", With: "/signin/with/", Out: "/signout",
	}
}

func TestSignInPages(t *testing.T) {
	t.Parallel()
	w := setup(t, withSignIn)
	wantPage(t, "a page for nobody", w.get(nil, "/models/vision/digits?environment=prod"), http.StatusUnauthorized,
		`href="/signin?return=%2Fmodels%2Fvision%2Fdigits%3Fenvironment%3Dprod"`)
	wantPage(t, "sign in", w.get(nil, "/signin?return=%2Fnodes%3Fa%3D%22%3E"), http.StatusOK,
		`action="/signin/token"`, `name="return" value="/nodes?a=&#34;&gt;"`,
		`href="/signin/with/corp?return=%2Fnodes%3Fa%3D%22%3E"`, "Sign in at id.example.com")
	jane := may("prod", "vision/**", storage.PermissionRead, storage.PermissionAttest)
	jane.Person = evidence.Person{Principal: "token:jane", Token: "jane"}
	wantPage(t, "who is signed in", w.get(jane, "/signin"), http.StatusOK,
		`<span class="person">jane</span>`, `action="/signout"`, "read, attest", "<code>vision/**</code>", "<code>prod</code>")
	anonymous := everything()
	anonymous.Name = "anonymous"
	open := w.get(anonymous, "/signin")
	wantPage(t, "an open service", open, http.StatusOK, "everybody who can reach it has full access")
	wantWithout(t, "an open service", open, "/signout")
}

func TestRefuseSignIn(t *testing.T) {
	t.Parallel()
	w := setup(t, withSignIn)
	recorder := httptest.NewRecorder()
	w.pages.(*web.Site).RefuseSignIn(recorder, httptest.NewRequest(http.MethodPost, "/signin/token", strings.NewReader("")),
		registry.Errorf(registry.CodeUnauthenticated, "the token <b> expired"), "/nodes")
	wantPage(t, "a token that expired", recorder, http.StatusUnauthorized,
		`role="alert"`, "the token &lt;b&gt; expired", `value="/nodes"`)
	if got := recorder.Header().Get("Content-Security-Policy"); !strings.HasPrefix(got, "default-src 'none'") {
		t.Errorf("content policy %q", got)
	}

	// What only the operator may know is not shown.
	recorder = httptest.NewRecorder()
	w.pages.(*web.Site).RefuseSignIn(recorder, httptest.NewRequest(http.MethodGet, "/signin/with/corp/callback", nil),
		registry.Errorf(registry.CodeInternal, "secretFile /etc/secret: no such file"), "/")
	wantPage(t, "a fault", recorder, http.StatusInternalServerError, "You are not signed in")
	wantWithout(t, "a fault", recorder, "/etc/secret")
}

func TestWithoutSessions(t *testing.T) {
	t.Parallel()
	w := setup(t)
	wantPage(t, "sign in", w.get(nil, "/signin"), http.StatusNotFound)
	wantWithout(t, "a page for nobody", w.get(nil, "/"), "/signin")
}
