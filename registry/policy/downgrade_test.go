package policy_test

import (
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/policy"
)

// Tags are ordered as SemVer orders versions, and revisions of one version by their numbers. Others have no order.
func TestCompareTags(t *testing.T) {
	t.Parallel()
	sorted := strings.Fields(`0.9.9 1.0.0-alpha 1.0.0-alpha.1 1.0.0-alpha.beta 1.0.0-beta 1.0.0-beta.2 1.0.0-beta.11 1.0.0-rc.1
		1.0.0-rc.1-r2 1.0.0 1.0.0-r2 1.0.0-r10 1.0.1 1.0.10 1.2.0 1.10.0 2.0.0-0 2.0.0-rc-1 2.0.0 99999999999999999999.0.0 100000000000000000000.0.0`)
	for i, a := range sorted {
		for j, b := range sorted {
			got := artifact.CompareTags(a, b)
			if i < j && got >= 0 || i == j && got != 0 || i > j && got <= 0 {
				t.Errorf("%s beside %s: %d", a, b, got)
			}
		}
	}
	for _, other := range []string{"", "latest", "1.0", "v1.0.0", "1.0.0+b", "01.0.0"} {
		if artifact.CompareTags(other, "1.0.0") != 0 || artifact.CompareTags("1.0.0", other) != 0 {
			t.Errorf("%q has an order", other)
		}
	}
}

// An older version replaces a newer one only where that is asked for, and the decision says so.
func TestCheckDowngrade(t *testing.T) {
	t.Parallel()
	r := sample() // 1.0.0
	claims := []evidence.Claim{signature(r.Digest)}
	for _, e := range r.Engines {
		claims = append(claims, signature(e.Digest))
	}
	for name, c := range map[string]struct {
		edit   func(*policy.PromotionContext)
		unmet  string
		listed bool
	}{
		"a newer version":   {func(p *policy.PromotionContext) { p.HeadVersion = "0.9.0" }, "", false},
		"nothing":           {func(p *policy.PromotionContext) { p.Head, p.HeadVersion = "", "" }, "", false},
		"an older version":  {nil, "no-downgrade of release: prod has 1.0.1, which is newer", true},
		"a later revision":  {func(p *policy.PromotionContext) { p.HeadVersion = "1.0.0-r2" }, "prod has 1.0.0-r2, which is newer", true},
		"as it was asked":   {func(p *policy.PromotionContext) { p.Downgrade = true }, "", true},
		"asked for nothing": {func(p *policy.PromotionContext) { p.Downgrade, p.HeadVersion = true, "0.9.0" }, "", false},
		"the same release":  {func(p *policy.PromotionContext) { p.Head = r.Digest }, "", false},
		"a replay":          {func(p *policy.PromotionContext) { p.Replay = true }, "", false},
		"an emergency":      {func(p *policy.PromotionContext) { p.BreakGlass = true }, "which is newer", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			demands := policy.Policy{Require: []string{policy.RequireSignature}, BreakGlass: policy.Skippable(),
				Promotion: policy.PromotionContext{Environment: "prod", Head: digest.FromString("head"), HeadVersion: "1.0.1"}}
			if c.edit != nil {
				c.edit(&demands.Promotion)
			}
			d := demands.Check(r, claims)
			var text []string
			listed := false
			for _, req := range d.Requirements {
				listed = listed || req.Name == policy.RequireNoDowngrade
			}
			for _, req := range d.Unmet() {
				text = append(text, req.Name+" of "+req.Subject+": "+req.Detail)
			}
			got := strings.Join(text, "; ")
			if d.Allowed() != (c.unmet == "") || !strings.Contains(got, c.unmet) || listed != c.listed {
				t.Errorf("allowed %v, unmet %q, listed %v; want %q and %v", d.Allowed(), got, listed, c.unmet, c.listed)
			}
		})
	}
}
