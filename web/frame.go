package web

import (
	"net/http"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/storage"
)

// frame is what all pages show around their body.
type frame struct {
	Title   string
	Nav     []entry
	Who     string // who is signed in; empty if the request has no principal
	SignIn  *link  // nil where the service has no such page, or somebody is signed in
	Account string // page of who is signed in; empty where the service has none
	Query   string // of the search
	API     string
	Live    string
	Body    any
}

// entry is a link of the navigation.
type entry struct {
	link
	Current bool
}

func frameOf(config *Config, r *http.Request, a answer) frame {
	f := frame{Title: a.title, API: a.api, Live: a.live, Body: a.body, Query: r.URL.Query().Get("q")}
	if len(f.Query) > maxValue {
		f.Query = ""
	}
	pages := []link{{"Models", "/"}, {"Nodes", "/nodes"}, {"History", "/history"}}
	if config.Operations != nil {
		pages = append(pages, link{"Operations", "/operations"})
	}
	for _, l := range pages {
		f.Nav = append(f.Nav, entry{l, l.Text == a.nav})
	}
	if p, ok := storage.PrincipalOf(r.Context()); ok {
		f.Who = registry.PlainText(nameOf(p.Name))
		if config.SignIn != nil {
			f.Account = SignInPath
		}
	} else if to := signInURL(config.SignIn, r); to != "" && r.URL.Path != SignInPath {
		f.SignIn = &link{"Sign in", to}
	}
	return f
}
