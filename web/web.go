package web

import (
	"bytes"
	"cmp"
	"context"
	"html/template"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/storage"
	"mlpromote.dev/mlpromote/web/page"
)

// site serves the pages.
type site struct {
	page.Config
	pages  map[string]*template.Template
	assets assets
}

// handle reads what a page shows.
type handle func(config *page.Config, r *http.Request) (page.Answer, error)

// Route is one page.
type Route struct {
	Pattern string // as [http.ServeMux] has it
	Query   []string
	handle  handle
}

// Routes lists all pages, for labels of metrics and for tests.
func Routes() []Route {
	return []Route{
		{"GET /{$}", []string{"after"}, boardPage},
		{"GET " + page.ModelsPath + "{path...}", []string{"environment", "after", "a", "b", "sort"}, modelPages},
		{"GET /environments/{environment}/promote/{model...}", nil, promotionPage},
		{"GET /environments/{environment}" + page.ActPath + "{model...}", formFields, actPage},
		{"POST /environments/{environment}" + page.ActPath + "{model...}", nil, submit},
		{"GET /nodes", []string{"after", "model", "environment", "runtime"}, nodesPage},
		{"POST /nodes", nil, resolvePasted},
		{"GET /history", []string{"environment", "model", "kind", "signer", "principal", "before"}, historyPage},
		{"GET /operations", nil, operationsPage},
		{"GET /search", []string{"q"}, searchPage},
		{signInPattern, []string{"return"}, signInPage},
	}
}

// Label is the route's path with its parameters, as metrics name it.
func (r Route) Label() string {
	_, path, _ := strings.Cut(r.Pattern, " ")
	return strings.NewReplacer("{$}", "", "{path...}", "{model}", "{model...}", "{model}").Replace(path)
}

// AssetsPattern is the pattern of styles, script and icon.
const AssetsPattern = "GET " + assetsPath + "{name}"

// Site serves all pages. Make one with [New].
type Site struct {
	http.Handler
	site *site
}

// RefuseSignIn answers with the page on which people sign in, and explains why they are not. back is the path of the
// page that they wanted.
func (s *Site) RefuseSignIn(w http.ResponseWriter, r *http.Request, err error, back string) {
	setHeaders(w.Header())
	s.site.send(w, r, askToSignIn(&s.site.Config, r, err, back))
}

// New returns the handler of all pages. Errors: CodeInvalid if the configuration lacks something.
func New(c page.Config) (*Site, error) {
	if c.Registry == nil || c.Preview == nil || c.Authorize == nil || c.ReadNode == nil || c.NodeTypes == nil || c.Runtimes == nil {
		return nil, registry.Errorf(registry.CodeInvalid, "web: registry, preview, authorize, readers and tables are all required")
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	s := &site{Config: c}
	var err error
	if s.assets, err = readAssets(); err != nil {
		return nil, err
	}
	if s.pages, err = parsePages(s.assets); err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	for _, route := range Routes() {
		mux.Handle(route.Pattern, s.serve(route))
	}
	mux.Handle(AssetsPattern, s.assets)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		s.send(w, r, refusalPage(&s.Config, r, registry.Errorf(registry.CodeNotFound, "there is no page at this address")))
	})
	return &Site{headers(mux), s}, nil
}

// serve answers requests for one page.
func (s *site) serve(route Route) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.Wait != nil {
			if wait := s.Wait(r); wait > 0 {
				s.send(w, r, tooMany(w.Header(), wait))
				return
			}
		}
		a, err := s.read(route, r)
		if err != nil {
			a = refusalPage(&s.Config, r, err)
		}
		if a.Location != "" {
			http.Redirect(w, r, a.Location, http.StatusSeeOther)
			return
		}
		s.send(w, r, a)
	})
}

func (s *site) read(route Route, r *http.Request) (page.Answer, error) {
	if _, ok := storage.PrincipalOf(r.Context()); !ok && route.Pattern != signInPattern {
		return page.Answer{}, s.unknownCaller(r.Context())
	}
	if err := checkQuery(r, route.Query); err != nil {
		return page.Answer{}, err
	}
	return route.handle(&s.Config, r)
}

// checkQuery refuses queries that no link of a page has.
func checkQuery(r *http.Request, names []string) error {
	if len(r.URL.RawQuery) > page.MaxQuery {
		return registry.Errorf(registry.CodeInvalid, "the address has a query of %d bytes: want at most %d", len(r.URL.RawQuery), page.MaxQuery)
	}
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return registry.Errorf(registry.CodeInvalid, "the query of the address cannot be read: %w", err)
	}
	for name, all := range values {
		limit := page.MaxValue
		if name == "return" {
			limit = page.MaxReturn
		}
		if !slices.Contains(names, name) || len(all) > 1 || len(all[0]) > limit {
			return registry.Errorf(registry.CodeInvalid, "query: %.40q is unknown, given twice or longer than %d bytes", name, limit)
		}
	}
	return nil
}

// unknownCaller is why a request has no principal.
func (s *site) unknownCaller(ctx context.Context) error {
	if s.Refused != nil {
		if err := s.Refused(ctx); err != nil {
			return err
		}
	}
	return registry.Errorf(registry.CodeUnauthenticated, "you are not signed in")
}

// send writes a page. A page that cannot be made is logged, and the reader gets a plain sentence.
func (s *site) send(w http.ResponseWriter, r *http.Request, a page.Answer) {
	var out bytes.Buffer
	if err := s.pages[a.Template].ExecuteTemplate(&out, "layout", frameOf(&s.Config, r, a)); err != nil {
		s.Logger.ErrorContext(r.Context(), "a page could not be made", "page", a.Template, "error", err)
		http.Error(w, "This page could not be made. The log of the service has the reason.", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Cache-Control", "private, no-cache")
	w.WriteHeader(cmp.Or(a.Status, http.StatusOK))
	_, _ = w.Write(out.Bytes()) // fails if the reader is gone
}
