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
func TestPolicyCompares(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		require []string
		want    bool
	}{
		"nothing":    {nil, false},
		"others":     {registry.DefaultRequire(), false},
		"no looser":  {[]string{registry.RequireParity, registry.RequireNoLooser}, true},
		"compatible": {[]string{registry.RequireCompatibleInterface}, true},
	} {
		if got := (registry.Policy{Require: c.require}).Compares(); got != c.want {
			t.Errorf("%s: got %t, want %t", name, got, c.want)
		}
	}
}

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

// The cases of a release are those of its engine with the fewest, in passing reports of trusted verifiers
// alone; fewer than before is a line, and so is not knowing how many there were.
func TestCasesShown(t *testing.T) {
	t.Parallel()
	r := sample()
	ran := func(engine, cases int, v registry.Verdict) registry.Claim {
		return parity(r, r.Engines[engine], 1, v, func(p *registry.ParityReport) { p.Cases.Count, p.Cases.Ran = cases, cases })
	}
	builder := ran(0, 900, registry.VerdictPass)
	builder.Roles = []registry.Role{registry.RoleBuilder}
	for name, c := range map[string]struct {
		claims []registry.Claim
		want   int
	}{
		"no report":          {nil, 0},
		"the engine of few":  {[]registry.Claim{ran(0, 300, registry.VerdictPass), ran(1, 20, registry.VerdictPass)}, 20},
		"the longer report":  {[]registry.Claim{ran(0, 20, registry.VerdictPass), ran(0, 300, registry.VerdictPass), ran(1, 300, registry.VerdictPass)}, 300},
		"a failing one":      {[]registry.Claim{ran(0, 300, registry.VerdictFail), ran(1, 20, registry.VerdictPass)}, 20},
		"an undecided one":   {[]registry.Claim{ran(0, 300, registry.VerdictUndecided)}, 0},
		"by a builder":       {[]registry.Claim{builder, ran(1, 20, registry.VerdictPass)}, 20},
		"of another release": {[]registry.Claim{parity(registry.Release{}, r.Engines[0], 1, registry.VerdictPass, nil)}, 0},
	} {
		if got := registry.CasesShown(r, c.claims); got != c.want {
			t.Errorf("%s: %d cases, want %d", name, got, c.want)
		}
	}
	for _, c := range []struct {
		now, was int
		want     string
	}{{20, 360, "cases: 20, were 360"}, {359, 360, "cases: 359, were 360"}, {0, 360, "cases: 0, were 360"}, {360, 360, ""}, {361, 360, ""}, {0, 0, ""},
		{20, 0, "cases: 20, and no report that counts says how many before"}} {
		var found registry.Comparison
		found.CountCases(c.now, c.was)
		if got := strings.Join(found.Looser, "; "); got != c.want {
			t.Errorf("%d cases after %d: %q, want %q", c.now, c.was, got, c.want)
		}
	}
}
