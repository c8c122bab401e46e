package web

import (
	"net/http"
	"net/url"
	"strings"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/storage"
	"mlpromote.dev/mlpromote/web/page"
)

// signInPattern is the only route for requests without a principal.
const signInPattern = "GET " + page.SignInPath

// signIn is the page on which people sign in.
type signIn struct {
	Why    string // why somebody is not signed in; empty if nothing failed
	Hints  []string
	Ways   []page.Link
	Token  string
	Return string
}

// account is that page for somebody who is signed in.
type account struct {
	Who    string
	Open   bool // the service asks nobody who they are
	Grants []grant
	Out    string
}

// grant is a line of what somebody may do.
type grant struct{ May, Model, Environment string }

func signInPage(config *page.Config, r *http.Request) (page.Answer, error) {
	if config.SignIn == nil {
		return page.Answer{}, registry.Errorf(registry.CodeNotFound, "this service has no sessions")
	}
	p, ok := storage.PrincipalOf(r.Context())
	if !ok {
		return askToSignIn(config, r, nil, r.URL.Query().Get("return")), nil
	}
	view := account{Who: registry.PlainText(page.NameOf(p.Name)), Open: p.Person == evidence.Person{}, Out: config.SignIn.Out}
	for _, g := range p.Grants {
		var may []string
		for _, permission := range g.Permissions {
			may = append(may, string(permission))
		}
		view.Grants = append(view.Grants, grant{strings.Join(may, ", "), g.Model, g.Environment})
	}
	return page.Answer{Template: "account", Title: "Your access", Body: view}, nil
}

// askToSignIn is the page on which people sign in. err says why they are not; nil if nothing failed. back is the
// path of the page that they wanted.
func askToSignIn(config *page.Config, r *http.Request, err error, back string) page.Answer {
	view := signIn{Token: config.SignIn.Token, Return: back}
	a := page.Answer{Template: "signin", Title: "Sign in", Status: http.StatusOK}
	if err != nil {
		view.Why, view.Hints = page.Explain(config.Logger, r, err)
		a.Status = registry.CodeOf(err).HTTPStatus()
	}
	for _, way := range config.SignIn.Ways {
		host := way.Issuer
		if u, err := url.Parse(way.Issuer); err == nil {
			host = u.Host
		}
		query := url.Values{"return": {back}}
		view.Ways = append(view.Ways, page.Link{Text: "Sign in at " + host, URL: config.SignIn.With + url.PathEscape(way.Name) + "?" + query.Encode()})
	}
	a.Body = view
	return a
}

// signInURL is the page on which people sign in and come back to the page of a request.
func signInURL(signIn *page.SignIn, r *http.Request) string {
	if signIn == nil {
		return ""
	}
	back := "/"
	switch {
	case strings.HasPrefix(r.URL.Path, page.SignInPath):
	case r.Method == http.MethodGet:
		back = r.URL.RequestURI()
	case r.Method == http.MethodPost && strings.Contains(r.URL.Path, page.ActPath):
		back = backToForm(r)
	}
	if back == "/" || len(back) > page.MaxReturn {
		return page.SignInPath
	}
	return page.SignInPath + "?" + url.Values{"return": {back}}.Encode()
}

// backToForm is the address of the form that a request without a session sent, with what was typed if that is short
// enough.
func backToForm(r *http.Request) string {
	f, err := postedForm(r)
	if err != nil {
		return "/"
	}
	if back := f.link(); len(back) <= page.MaxReturn {
		return back
	}
	f.Reason = ""
	return f.link()
}
