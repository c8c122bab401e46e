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
		"nothing looser": {func(p *registry.Policy) {
			p.Promotion.Environment, p.Promotion.Head, p.Promotion.Comparison = "prod", head, found(nil, nil)
		}, ""},
		"nothing there":       {func(p *registry.Policy) { p.Promotion.Environment = "prod" }, ""},
		"there already":       {func(p *registry.Policy) { p.Promotion.Environment, p.Promotion.Head = "prod", r.Digest }, ""},
		"a replay":            {func(p *registry.Policy) { p.Promotion.Replay = true }, ""},
		"the zero policy":     {func(*registry.Policy) {}, "no-looser of release: it was not compared"},
		"not compared":        {func(p *registry.Policy) { p.Promotion.Environment, p.Promotion.Head = "prod", head }, "compatible-interface of release: it was not compared"},
		"without environment": {func(p *registry.Policy) { p.Promotion.Head, p.Promotion.Comparison = head, found(nil, nil) }, "it was not compared"},
		"looser": {func(p *registry.Policy) {
			p.Promotion.Environment, p.Promotion.Head, p.Promotion.Comparison = "prod", head, found([]string{"a: 2, was 1", "b: 4, was 3"}, nil)
		},
			"no-looser of release: 2 limits looser than in 1.0.0, which prod has now: a: 2, was 1; b: 4, was 3"},
		"incompatible": {func(p *registry.Policy) {
			p.Promotion.Environment, p.Promotion.Head, p.Promotion.Comparison = "prod", head, found(nil, []string{"output y is gone"})
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

// An approver lifts a difference by accepting its line, word for word, for this destination. Each line
// needs one, and an approval that does not count lifts nothing.
func TestAcceptedDifferences(t *testing.T) {
	t.Parallel()
	r := sample()
	const first, second = "int8, output y: snr at least 11, was 12", "latency: p99 not limited, was at most 5ms"
	accepts := func(lines ...string) func(*registry.Approval) {
		return func(a *registry.Approval) { a.Accepts = lines }
	}
	elsewhere := func(a *registry.Approval) {
		a.Accepts, a.ResourceURI = []string{first, second}, "oci://local/canary/vision/digits"
	}
	for name, c := range map[string]struct {
		claims []registry.Claim
		want   string
	}{
		"none":                {nil, "2 limits looser than in 1.0.0, which prod has now: " + first + "; " + second},
		"both by one":         {[]registry.Claim{approval(r, approver, 9, accepts(first, second))}, ""},
		"both by two":         {[]registry.Claim{approval(r, approver, 9, accepts(first)), approval(r, "other", 10, accepts(second))}, ""},
		"one":                 {[]registry.Claim{approval(r, approver, 9, accepts(first))}, "prod has now: " + second},
		"other words":         {[]registry.Claim{approval(r, approver, 9, accepts(first+" ", second))}, "prod has now: " + first},
		"no line":             {[]registry.Claim{approval(r, approver, 9, nil)}, first},
		"for another":         {[]registry.Claim{approval(r, approver, 9, elsewhere)}, first},
		"taken back":          {[]registry.Claim{approval(r, approver, 9, accepts(first, second)), withdrawal(r, approver, 10)}, first},
		"by a builder":        {[]registry.Claim{approval(r, builder, 9, accepts(first, second)), signature(r.Digest)}, first},
		"expired in meantime": {[]registry.Claim{approval(r, approver, 9, func(a *registry.Approval) { a.Accepts, a.ExpiresOn = []string{first, second}, hours(12) })}, first},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := asking(0)
			p.Require = []string{registry.RequireNoLooser}
			p.Promotion.Head, p.Promotion.Comparison = digest.FromString("head"), &registry.Comparison{Version: "1.0.0", Looser: []string{first, second}}
			d := p.Check(r, c.claims)
			if got := unmet(d); d.Allowed() != (c.want == "") || !strings.Contains(got, c.want) {
				t.Errorf("unmet %q, want %q", got, c.want)
			}
		})
	}
}
