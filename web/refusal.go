package web

import (
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/web/page"
)

// refusal is the page of a request that gets no other one.
type refusal struct {
	Heading string
	Text    string
	Hints   []string
	SignIn  bool   // signing in helps
	To      string // page on which to sign in; empty where the service has none
	Typed   string // the reason in a form that was not done
}

// refusalPage says what went wrong and what to do. What only the operator may know is logged.
func refusalPage(config *page.Config, r *http.Request, err error) page.Answer {
	code := registry.CodeOf(err)
	view := refusal{Heading: code.Title()}
	view.Text, view.Hints = page.Explain(config.Logger, r, err)
	view.Text = page.Sentence(view.Text)
	switch code {
	case registry.CodeUnauthenticated:
		view.Heading, view.SignIn, view.To = "Sign in to see this page", true, signInURL(config.SignIn, r)
		if r.Method == http.MethodPost && strings.Contains(r.URL.Path, page.ActPath) {
			view.Heading = "Sign in to go on: nothing was done"
			if f, err := postedForm(r); err == nil {
				view.Typed = registry.PlainText(f.Reason)
			}
		}
	case registry.CodeForbidden:
		view.Heading = "You may not see this"
	case registry.CodeNotFound:
		view.Heading = "Not found"
	case registry.CodeInternal, registry.CodeUnavailable:
		view.Heading = "This page cannot be shown now"
	}
	return page.Answer{Template: "refusal", Title: view.Heading, Status: code.HTTPStatus(), Body: view}
}

// tooMany is the page of a caller that asks too often. It reads nothing and writes no line into the log: both are what
// the limit protects.
func tooMany(header http.Header, wait time.Duration) page.Answer {
	seconds := int(math.Ceil(wait.Seconds()))
	header.Set("Retry-After", strconv.Itoa(seconds))
	text := "You asked for more pages than this service shows at once. Wait " + registry.Count(seconds, "second") + " and try again."
	view := refusal{Heading: "Too many requests", Text: text}
	return page.Answer{Template: "refusal", Title: view.Heading, Status: http.StatusTooManyRequests, Body: view}
}
