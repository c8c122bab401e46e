package server

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/go-chi/chi/v5"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/internal/wire"
)

// methods are the operations on one resource.
type methods map[string]route

// newRouter makes a handler of a table. Errors: CodeInvalid.
func newRouter(s server, table []route) (http.Handler, error) {
	resources := make(map[string]methods) // by the pattern that chi is given
	operations := make(map[string]methods)
	for _, r := range table {
		if err := r.validate(); err != nil {
			return nil, err
		}
		group, pattern := resources, r.Pattern
		if operation, ok := strings.CutPrefix(r.Pattern, modelPrefix); ok {
			group, pattern = operations, operation
		} else if prefix, _, ok := strings.Cut(r.Pattern, "{"); ok {
			pattern = prefix + "*"
		}
		if group[pattern] == nil {
			group[pattern] = make(methods)
		}
		if _, twice := group[pattern][r.Method]; twice {
			return nil, registry.Errorf(registry.CodeInvalid, "server: route %s %s stands there twice", r.Method, r.Pattern)
		}
		group[pattern][r.Method] = r
	}
	router := chi.NewRouter()
	for pattern, m := range resources {
		prefix, _, _ := strings.Cut(pattern, "*")
		router.HandleFunc(pattern, s.handle(func(w http.ResponseWriter, r *http.Request) error {
			return s.dispatch(w, r, m, strings.TrimPrefix(r.URL.Path, prefix))
		}))
	}
	router.HandleFunc(wire.ModelsPath+"*", s.handle(func(w http.ResponseWriter, r *http.Request) error {
		model, operation, err := wire.ParseModelPath(r.URL.Path)
		if err != nil {
			return err
		}
		return s.dispatch(w, r, operations[operation], model)
	}))
	router.NotFound(s.handle(func(_ http.ResponseWriter, r *http.Request) error { return noResource(r) }))
	return router, nil
}

// dispatch answers a request by one of the operations on a resource.
func (s server) dispatch(w http.ResponseWriter, r *http.Request, m methods, name string) error {
	if len(m) == 0 {
		return noResource(r)
	}
	route, ok := m[r.Method]
	if !ok {
		return notAllowed(w, r, slices.Sorted(maps.Keys(m))...)
	}
	values, err := asked(r, route.Query...)
	if err != nil {
		return err
	}
	if !route.ByRegistry {
		if err := s.Authorize(r.Context(), route.Permission, "", ""); err != nil {
			return err
		}
	}
	return route.handle(s, w, &request{Request: r, Name: name, Values: values})
}

func noResource(r *http.Request) error {
	return registry.Errorf(registry.CodeNotFound, "no resource %s", r.URL.Path)
}

// query is the values of a query.
type query = url.Values

// asked gives the values of a query. A name that nobody reads is a mistake: what it was
// meant to ask would be passed over.
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
