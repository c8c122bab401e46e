package server

import (
	"slices"
	"testing"

	"mlpromote.dev/mlpromote/registry"
)

// A table with a route that lets everybody in, or that is two at once, is not served.
func TestRouterRefusesTables(t *testing.T) {
	t.Parallel()
	for name, edit := range map[string]func(r []route) []route{
		"no permission": func(r []route) []route { r[0].Permission = ""; return r },
		"no handler":    func(r []route) []route { r[len(r)-1].handle = nil; return r },
		"no method":     func(r []route) []route { r[1].Method = ""; return r },
		"elsewhere":     func(r []route) []route { r[1].Pattern = "/v2/"; return r },
		"twice":         func(r []route) []route { return append(r, r[3]) },
	} {
		h, err := newRouter(server{}, edit(slices.Clone(table())))
		if h != nil || registry.CodeOf(err) != registry.CodeInvalid {
			t.Errorf("%s: got %v, error %v, want CodeInvalid", name, h, err)
		}
	}
	if _, err := newRouter(server{}, table()); err != nil {
		t.Error(err)
	}
}
