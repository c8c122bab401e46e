package policy_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/policy"
)

// What a release promises must not be less than what the release that it replaces does. A comparison
// that was not made refuses.
func TestCheckComparison(t *testing.T) {
	t.Parallel()
	r := sample()
	head := digest.FromString("head")
	found := func(looser, iface []string) *policy.Comparison {
		return &policy.Comparison{Version: "1.0.0", Looser: looser, Interface: iface}
	}
	both := policy.Policy{Require: []string{policy.RequireNoLooser, policy.RequireCompatibleInterface}}
	for name, c := range map[string]struct {
		edit func(*policy.Policy)
		want string
	}{
		"nothing looser": {func(p *policy.Policy) {
			p.Promotion.Environment, p.Promotion.Head, p.Promotion.Comparison = "prod", head, found(nil, nil)
		}, ""},
		"nothing there":       {func(p *policy.Policy) { p.Promotion.Environment = "prod" }, ""},
		"there already":       {func(p *policy.Policy) { p.Promotion.Environment, p.Promotion.Head = "prod", r.Digest }, ""},
		"a replay":            {func(p *policy.Policy) { p.Promotion.Replay = true }, ""},
		"the zero policy":     {func(*policy.Policy) {}, "no-looser of release: it was not compared"},
		"not compared":        {func(p *policy.Policy) { p.Promotion.Environment, p.Promotion.Head = "prod", head }, "compatible-interface of release: it was not compared"},
		"without environment": {func(p *policy.Policy) { p.Promotion.Head, p.Promotion.Comparison = head, found(nil, nil) }, "it was not compared"},
		"looser": {func(p *policy.Policy) {
			p.Promotion.Environment, p.Promotion.Head, p.Promotion.Comparison = "prod", head, found([]string{"a: 2, was 1", "b: 4, was 3"}, nil)
		},
			"no-looser of release: 2 limits looser than in 1.0.0, which prod has now: a: 2, was 1; b: 4, was 3"},
		"incompatible": {func(p *policy.Policy) {
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
		"others":     {policy.DefaultRequire(), false},
		"no looser":  {[]string{policy.RequireParity, policy.RequireNoLooser}, true},
		"compatible": {[]string{policy.RequireCompatibleInterface}, true},
	} {
		if got := (policy.Policy{Require: c.require}).Compares(); got != c.want {
			t.Errorf("%s: got %t, want %t", name, got, c.want)
		}
	}
}

func TestAcceptedDifferences(t *testing.T) {
	t.Parallel()
	r := sample()
	const first, second = "int8, output y: snr at least 11, was 12", "latency: p99 not limited, was at most 5ms"
	accepts := func(lines ...string) func(*evidence.Approval) {
		return func(a *evidence.Approval) { a.Accepts = lines }
	}
	elsewhere := func(a *evidence.Approval) {
		a.Accepts, a.ResourceURI = []string{first, second}, "oci://local/canary/vision/digits"
	}
	for name, c := range map[string]struct {
		claims []evidence.Claim
		want   string
	}{
		"none":                {nil, "2 limits looser than in 1.0.0, which prod has now: " + first + "; " + second},
		"both by one":         {[]evidence.Claim{approval(r, approver, 9, accepts(first, second))}, ""},
		"both by two":         {[]evidence.Claim{approval(r, approver, 9, accepts(first)), approval(r, "other", 10, accepts(second))}, ""},
		"one":                 {[]evidence.Claim{approval(r, approver, 9, accepts(first))}, "prod has now: " + second},
		"other words":         {[]evidence.Claim{approval(r, approver, 9, accepts(first+" ", second))}, "prod has now: " + first},
		"no line":             {[]evidence.Claim{approval(r, approver, 9, nil)}, first},
		"for another":         {[]evidence.Claim{approval(r, approver, 9, elsewhere)}, first},
		"taken back":          {[]evidence.Claim{approval(r, approver, 9, accepts(first, second)), withdrawal(r, approver, 10)}, first},
		"by a builder":        {[]evidence.Claim{approval(r, builder, 9, accepts(first, second)), signature(r.Digest)}, first},
		"expired in meantime": {[]evidence.Claim{approval(r, approver, 9, func(a *evidence.Approval) { a.Accepts, a.ExpiresOn = []string{first, second}, hours(12) })}, first},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := asking(0)
			p.Require = []string{policy.RequireNoLooser}
			p.Promotion.Head, p.Promotion.Comparison = digest.FromString("head"), &policy.Comparison{Version: "1.0.0", Looser: []string{first, second}}
			d := p.Check(r, c.claims)
			if got := unmet(d); d.Allowed() != (c.want == "") || !strings.Contains(got, c.want) {
				t.Errorf("unmet %q, want %q", got, c.want)
			}
		})
	}
}

// The cases of an engine are those of its longest passing report by a trusted verifier.
func TestCasesShown(t *testing.T) {
	t.Parallel()
	r := sample()
	ran := func(engine, cases int, v evidence.Verdict) evidence.Claim {
		return parity(r, r.Engines[engine], 1, v, func(p *evidence.ParityReport) { p.Cases.Count, p.Cases.Ran = cases, cases })
	}
	builder := ran(0, 900, evidence.VerdictPass)
	builder.Roles = []evidence.Role{evidence.RoleBuilder}
	for name, c := range map[string]struct {
		claims []evidence.Claim
		want   [2]int // fp32 and int8
	}{
		"no report":          {nil, [2]int{}},
		"one of each":        {[]evidence.Claim{ran(0, 300, evidence.VerdictPass), ran(1, 20, evidence.VerdictPass)}, [2]int{300, 20}},
		"the longer report":  {[]evidence.Claim{ran(0, 20, evidence.VerdictPass), ran(0, 300, evidence.VerdictPass), ran(1, 300, evidence.VerdictPass)}, [2]int{300, 300}},
		"a failing one":      {[]evidence.Claim{ran(0, 300, evidence.VerdictFail), ran(1, 20, evidence.VerdictPass)}, [2]int{0, 20}},
		"an undecided one":   {[]evidence.Claim{ran(0, 300, evidence.VerdictUndecided)}, [2]int{}},
		"by a builder":       {[]evidence.Claim{builder, ran(1, 20, evidence.VerdictPass)}, [2]int{0, 20}},
		"of another release": {[]evidence.Claim{parity(artifact.Release{}, r.Engines[0], 1, evidence.VerdictPass, nil)}, [2]int{}},
	} {
		got := policy.CasesShown(r, c.claims)
		want := []policy.EngineCases{{Label: "x86/fp32", Precision: "fp32", Cases: c.want[0]}, {Label: "x86/int8", Precision: "int8", Cases: c.want[1]}}
		if !slices.Equal(got, want) {
			t.Errorf("%s: got %+v, want %+v", name, got, want)
		}
	}
}

// Fewer cases than the engine of the same label had is a line, and so is not knowing how many there were.
// No engine hides behind another one with fewer.
func TestCountCases(t *testing.T) {
	t.Parallel()
	engines := func(all ...policy.EngineCases) []policy.EngineCases { return all }
	at := func(label, precision string, cases int) policy.EngineCases {
		return policy.EngineCases{Label: label, Precision: precision, Cases: cases}
	}
	for name, c := range map[string]struct {
		now, was []policy.EngineCases
		want     string
	}{
		"fewer in all":          {engines(at("a/fp32", "fp32", 20), at("a/int8", "int8", 20)), engines(at("a/fp32", "fp32", 360), at("a/int8", "int8", 360)), "cases: 20, were 360"},
		"one less":              {engines(at("a/fp32", "fp32", 359)), engines(at("a/fp32", "fp32", 360)), "cases: 359, were 360"},
		"as many":               {engines(at("a/fp32", "fp32", 360)), engines(at("a/fp32", "fp32", 360)), ""},
		"more":                  {engines(at("a/fp32", "fp32", 361)), engines(at("a/fp32", "fp32", 360)), ""},
		"no report now":         {engines(at("a/fp32", "fp32", 0)), engines(at("a/fp32", "fp32", 360)), ""},
		"no report, not before": {engines(at("a/fp32", "fp32", 0)), engines(at("a/fp32", "fp32", 0)), ""},
		"not known before":      {engines(at("a/fp32", "fp32", 20)), engines(at("a/fp32", "fp32", 0)), "cases: 20, and no report that counts says how many before"},
		"not known of one":      {engines(at("a/fp32", "fp32", 20)), engines(at("a/fp32", "fp32", 0), at("b/fp32", "fp32", 10)), "cases: 20, and no report that counts says how many before"},
		"behind a weaker engine": {engines(at("a/fp32", "fp32", 360), at("b/fp32", "fp32", 20)), engines(at("a/fp32", "fp32", 20), at("b/fp32", "fp32", 360)),
			"cases of b/fp32: 20, were 360"},
		"two that differ": {engines(at("a/fp32", "fp32", 20), at("b/fp32", "fp32", 30)), engines(at("a/fp32", "fp32", 360), at("b/fp32", "fp32", 360)),
			"cases of a/fp32: 20, were 360; cases of b/fp32: 30, were 360"},
		"a new label":               {engines(at("new/fp32", "fp32", 99)), engines(at("a/fp32", "fp32", 360), at("b/fp32", "fp32", 100), at("a/int8", "int8", 20)), "cases: 99, were 100"},
		"a new label, enough":       {engines(at("new/fp32", "fp32", 100)), engines(at("a/fp32", "fp32", 360), at("b/fp32", "fp32", 100)), ""},
		"a new precision":           {engines(at("a/int4", "int4", 19)), engines(at("a/fp32", "fp32", 360), at("a/int8", "int8", 20)), "cases: 19, were 20"},
		"another precision in name": {engines(at("a/small", "int8", 99)), engines(at("a/small", "fp32", 20), at("b/int8", "int8", 100)), "cases: 99, were 100"},
		"nothing was shown before":  {engines(at("new/fp32", "fp32", 99)), engines(at("a/fp32", "fp32", 0)), "cases: 99, and no report that counts says how many before"},
		"an engine is gone":         {engines(at("a/fp32", "fp32", 360)), engines(at("a/fp32", "fp32", 360), at("b/fp32", "fp32", 900)), ""},
		"no engine":                 {nil, engines(at("a/fp32", "fp32", 360)), ""},
	} {
		var found policy.Comparison
		found.CountCases(c.now, c.was)
		if got := strings.Join(found.Looser, "; "); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}
