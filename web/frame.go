package web

import (
	"net/http"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/storage"
	"mlpromote.dev/mlpromote/web/page"
)

// frame is what all pages show around their body.
type frame struct {
	Title   string
	Nav     []entry
	Who     string     // who is signed in; empty if the request has no principal
	SignIn  *page.Link // nil where the service has no such page, or somebody is signed in
	Account string     // page of who is signed in; empty where the service has none
	Query   string     // of the search
	API     string
	Live    string
	Body    any
}

// entry is a link of the navigation.
type entry struct {
	page.Link
	Current bool
}

func frameOf(config *page.Config, r *http.Request, a page.Answer) frame {
	f := frame{Title: a.Title, API: a.API, Live: a.Live, Body: a.Body, Query: r.URL.Query().Get("q")}
	if len(f.Query) > page.MaxValue {
		f.Query = ""
	}
	pages := []page.Link{{Text: "Models", URL: "/"}, {Text: "Nodes", URL: "/nodes"}, {Text: "History", URL: "/history"}}
	if config.Operations != nil {
		pages = append(pages, page.Link{Text: "Operations", URL: "/operations"})
	}
	for _, l := range pages {
		f.Nav = append(f.Nav, entry{l, l.Text == a.Nav})
	}
	if p, ok := storage.PrincipalOf(r.Context()); ok {
		f.Who = registry.PlainText(page.NameOf(p.Name))
		if config.SignIn != nil {
			f.Account = page.SignInPath
		}
	} else if to := signInURL(config.SignIn, r); to != "" && r.URL.Path != page.SignInPath {
		f.SignIn = &page.Link{Text: "Sign in", URL: to}
	}
	return f
}
