package registry_test

import (
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry"
)

// What a release promises must not be less than what the release that it replaces does. A comparison
// that was not made refuses.
func TestCheckComparison(t *testing.T) {
	t.Parallel()
	r := sample()
	head := digest.FromString("head")
	found := func(looser, iface []string) *registry.Comparison {
		return &registry.Comparison{Version: "1.0.0", Looser: looser, Interface: iface}
	}
	both := registry.Policy{Require: []string{registry.RequireNoLooser, registry.RequireCompatibleInterface}}
	for name, c := range map[string]struct {
		edit func(*registry.Policy)
		want string
	}{
		"nothing looser":      {func(p *registry.Policy) { p.Environment, p.Head, p.Comparison = "prod", head, found(nil, nil) }, ""},
		"nothing there":       {func(p *registry.Policy) { p.Environment = "prod" }, ""},
		"there already":       {func(p *registry.Policy) { p.Environment, p.Head = "prod", r.Digest }, ""},
		"a replay":            {func(p *registry.Policy) { p.Replay = true }, ""},
		"the zero policy":     {func(*registry.Policy) {}, "no-looser of release: it was not compared"},
		"not compared":        {func(p *registry.Policy) { p.Environment, p.Head = "prod", head }, "compatible-interface of release: it was not compared"},
		"without environment": {func(p *registry.Policy) { p.Head, p.Comparison = head, found(nil, nil) }, "it was not compared"},
		"looser": {func(p *registry.Policy) {
			p.Environment, p.Head, p.Comparison = "prod", head, found([]string{"a: 2, was 1", "b: 4, was 3"}, nil)
		},
			"no-looser of release: 2 limits looser than in 1.0.0, which prod has now: a: 2, was 1; b: 4, was 3"},
		"incompatible": {func(p *registry.Policy) {
			p.Environment, p.Head, p.Comparison = "prod", head, found(nil, []string{"output y is gone"})
		},
			"compatible-interface of release: what calls 1.0.0, which prod has now, cannot call it: output y is gone"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			policy := both
			c.edit(&policy)
			if got := unmet(policy.Check(r, nil)); strings.ReplaceAll(got, "no-quarantine", "") == "" != (c.want == "") || !strings.Contains(got, c.want) {
				t.Errorf("unmet %q, want %q", got, c.want)
			}
		})
	}
}
