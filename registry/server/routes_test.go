package server_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/rest"
	"mlpromote.dev/mlpromote/registry/server"
	"mlpromote.dev/mlpromote/registry/storage"
)

// fill puts names into a pattern.
func fill(pattern string) string {
	return strings.NewReplacer("{model}", "vision/digits", "{name}", "box", "{id}", "x", "{seq}", "1").Replace(pattern)
}

// Every route that is told of is served, for its method, with a permission that there is.
func TestRoutesAreServed(t *testing.T) {
	t.Parallel()
	w := setup(t)
	seen := make(map[string]bool)
	for _, o := range rest.Table() {
		r := o.Describe()
		name := r.Method + " " + r.Path
		if seen[name] || !slices.Contains(storage.Permissions(), r.Permission) || r.Summary == "" {
			t.Errorf("%s: permission %q, summary %q, seen before: %t", name, r.Permission, r.Summary, seen[name])
		}
		seen[name] = true
		got := w.do(r.Method, fill(r.Path)+"?nobody-reads-this=1", "")
		p := wantProblem(t, name, got, http.StatusBadRequest, registry.CodeInvalid)
		if !strings.Contains(p.Detail, "nobody-reads-this") {
			t.Errorf("%s does not say what is wrong with the query: %s", name, p.Detail)
		}
	}
}

// What the registry is not asked about is asked of Authorize, and nothing is answered
// without its leave.
func TestRoutesAreAuthorized(t *testing.T) {
	t.Parallel()
	var asked []storage.Permission
	stopped := make(chan struct{})
	close(stopped)
	w := setup(t, func(c *server.Config) {
		c.Stop = stopped
		c.Authorize = func(_ context.Context, p storage.Permission, environment, model string) error {
			if environment != "" || model != "" {
				t.Errorf("asked for %s of %s in %s", p, model, environment)
			}
			asked = append(asked, p)
			return registry.Errorf(registry.CodeForbidden, "no")
		}
	})
	for _, o := range rest.Table() {
		r := o.Describe()
		asked = nil
		got := w.do(r.Method, fill(r.Path), "")
		switch {
		case !r.Whole && len(asked) > 0:
			t.Errorf("%s %s asks for %v, though the registry does", r.Method, r.Path, asked)
		case r.Whole && (len(asked) != 1 || asked[0] != r.Permission):
			t.Errorf("%s %s asks for %v, want %s", r.Method, r.Path, asked, r.Permission)
		case r.Whole:
			wantProblem(t, r.Method+" "+r.Path, got, http.StatusForbidden, registry.CodeForbidden)
		}
	}
}
