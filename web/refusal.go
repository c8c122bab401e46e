package web

import (
	"net/http"

	"mlpromote.dev/mlpromote/registry"
)

// refusal is the page of a request that gets no other one.
type refusal struct {
	Heading string
	Text    string
	Hints   []string
	SignIn  bool // signing in helps
}

// refusal says what went wrong and what to do. What only the operator may know is logged.
func (s *site) refusal(r *http.Request, err error) answer {
	code := registry.CodeOf(err)
	text, all := registry.TextForClients(err)
	if !all {
		s.Logger.WarnContext(r.Context(), "a page was refused", "path", r.URL.Path, "error", err)
	}
	view := refusal{Heading: code.Title(), Text: registry.PlainText(text), Hints: registry.Hints(err)}
	switch code {
	case registry.CodeUnauthenticated:
		view.Heading, view.SignIn = "Sign in to see this page", true
	case registry.CodeForbidden:
		view.Heading = "You may not see this"
	case registry.CodeNotFound:
		view.Heading = "Not found"
	case registry.CodeInternal, registry.CodeUnavailable:
		s.Logger.ErrorContext(r.Context(), "a page could not be read", "path", r.URL.Path, "error", err)
		view.Heading, view.Hints = "This page cannot be shown now", nil
		view.Text = "The service could not read what it needs. Its log says why. Try again in a moment."
	}
	return answer{template: "refusal", title: view.Heading, status: code.HTTPStatus(), body: view}
}
