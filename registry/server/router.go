package server

import (
	"cmp"
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/go-chi/chi/v5"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/internal/requestid"
	"mlpromote.dev/mlpromote/registry/rest"
)

// methods are the operations on one resource.
type methods map[string]route

// resources are the operations of a route table. Those on models are separate from those by chi
// pattern, because chi cannot match model names with slashes.
type resources struct {
	patterns   map[string]methods
	operations map[string]methods
}

func group(table []route) (resources, error) {
	all := resources{patterns: make(map[string]methods), operations: make(map[string]methods)}
	for _, r := range table {
		if err := r.validate(); err != nil {
			return resources{}, err
		}
		of, key := all.patterns, r.Path
		if operation, ok := strings.CutPrefix(r.Path, modelPrefix); ok {
			of, key = all.operations, operation
		} else if prefix, _, ok := strings.Cut(r.Path, "{"); ok {
			key = prefix + "*"
		}
		if of[key] == nil {
			of[key] = make(methods)
		}
		if _, twice := of[key][r.Method]; twice {
			return resources{}, registry.Errorf(registry.CodeInvalid,
				"server: route %s %s is defined twice", r.Method, r.Path)
		}
		of[key][r.Method] = r
	}
	return all, nil
}

// newRouter returns a handler for a route table. Errors: CodeInvalid.
func newRouter(s server, table []route) (http.Handler, error) {
	all, err := group(table)
	if err != nil {
		return nil, err
	}
	router := chi.NewRouter()
	for pattern, m := range all.patterns {
		prefix, _, below := strings.Cut(pattern, "*")
		router.HandleFunc(pattern, serve(s, func(r *http.Request) (methods, string, error) {
			name := strings.TrimPrefix(r.URL.Path, prefix)
			if below && name == "" {
				return nil, "", noResource(r)
			}
			return m, name, nil
		}))
	}
	models := serve(s, func(r *http.Request) (methods, string, error) {
		model, operation, err := rest.ParseModelPath(r.URL.Path)
		return all.operations[operation], model, err
	})
	router.NotFound(serve(s, func(r *http.Request) (methods, string, error) { return nil, "", noResource(r) }))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(cmp.Or(r.URL.RawPath, r.URL.Path), rest.ModelsPath) {
			models(w, r) // which needs none of what chi finds in a path
			return
		}
		router.ServeHTTP(w, r)
	}), nil
}

// nosniff is a value of X-Content-Type-Options.
var nosniff = []string{"nosniff"}

// serve answers requests with the operations and the name that find returns.
func serve(s server, find func(r *http.Request) (methods, string, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		r = requestid.Name(w, r)
		w.Header()["X-Content-Type-Options"] = nosniff
		m, name, err := find(r)
		request := &request{Request: r, Name: name, writer: w}
		var a *response
		if err == nil {
			a, err = dispatch(s, m, request)
		}
		if err == nil && a.stream != nil {
			err = a.stream(w, request)
			if err == nil {
				return
			}
		}
		if err != nil {
			a = problemOf(s.Logger, r, err)
		}
		send(w, r, a)
	}
}

// dispatch answers a request with one of the operations on a resource.
func dispatch(s server, m methods, r *request) (*response, error) {
	if len(m) == 0 {
		return nil, noResource(r.Request)
	}
	method := r.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	route, ok := m[method]
	if !ok {
		return nil, notAllowed(r.Request, allowed(m)...)
	}
	if err := allow(s.Limiter, r.Request); err != nil {
		return nil, err
	}
	if err := limitBody(route, r); err != nil {
		return nil, err
	}
	if method == http.MethodGet && IsLookup(r.Request) { // sent again and again, so parsed once
		if a, err := answerAgain(s, r, questionOf(r, "")); a != nil || err != nil {
			return a, err
		}
	}
	var err error
	if r.Values, err = asked(r.Request, route.query...); err != nil {
		return nil, err
	}
	if route.Whole {
		if err := s.Authorize(r.Context(), route.Permission, "", ""); err != nil {
			return nil, err
		}
	}
	if route.Method == http.MethodGet {
		return route.handle(s, r)
	}
	defer s.feed.Changed()
	if !route.Once() {
		return route.handle(s, r)
	}
	a, err := once(s, route, r)
	if err != nil {
		return nil, err
	}
	return located(r, a), nil
}

// located sets the Location of a created resource that has an identifier.
func located(r *request, a *response) *response {
	var made struct {
		ID string `json:"id"`
	}
	if a.status != http.StatusCreated || json.Unmarshal(a.body, &made) != nil || made.ID == "" {
		return a
	}
	return a.with("Location", r.URL.Path+"/"+made.ID)
}

// allowed lists the methods of a resource for a header.
func allowed(m methods) []string {
	names := slices.Collect(maps.Keys(m))
	if slices.Contains(names, http.MethodGet) {
		names = append(names, http.MethodHead)
	}
	slices.Sort(names)
	return names
}

// asked returns the query parameters. It refuses unknown names, which would otherwise be
// ignored.
func asked(r *http.Request, names ...string) (query, error) {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, registry.Errorf(registry.CodeInvalid, "query: %w", err)
	}
	for name := range values {
		if !slices.Contains(names, name) {
			return nil, registry.Errorf(registry.CodeInvalid, "query: unknown %q: want %s", name, wanted(names))
		}
	}
	return values, nil
}

func wanted(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}
