package policy_test

import (
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/policy"
	"mlpromote.dev/mlpromote/registry/restriction"
)

// through makes a report one of a run through a server.
func through(by, version string, seen bool) func(*evidence.ParityReport) {
	return func(p *evidence.ParityReport) {
		p.Runtime = evidence.RuntimeUsed{Name: by, Version: version, Library: evidence.NewDigestSet(digest.FromString(by + version)),
			Served: &evidence.Served{By: by, Version: version, Protocol: "oip-rest", Model: "m", BytesSeen: seen}}
	}
}

// Passes and failures through a server count for the rule that asks for it, and for nothing else. A later pass of the same server heals a failure.
func TestServed(t *testing.T) {
	t.Parallel()
	r := sample()
	e := r.Engines[0]
	const seen = true
	bare := parity(r, e, 1, evidence.VerdictPass, nil)
	for name, c := range map[string]struct {
		rule   policy.ServedRule
		claims []evidence.Claim
		served string // part of the detail where the requirement served is not met
		parity string // and parity
	}{
		"no rule":                   {policy.ServedRule{}, []evidence.Claim{bare}, "", ""},
		"no such pass":              {policy.ServedRule{By: "triton"}, []evidence.Claim{bare}, "no pass through triton on ", ""},
		"a pass":                    {policy.ServedRule{By: "triton"}, []evidence.Claim{bare, parity(r, e, 2, evidence.VerdictPass, through("triton", "2.51.0", seen))}, "", ""},
		"the version":               {policy.ServedRule{By: "triton", Version: artifact.Constraint{Min: "2.51"}}, []evidence.Claim{bare, parity(r, e, 2, evidence.VerdictPass, through("triton", "2.51.0", seen))}, "", ""},
		"an older one":              {policy.ServedRule{By: "triton", Version: artifact.Constraint{Min: "2.52"}}, []evidence.Claim{bare, parity(r, e, 2, evidence.VerdictPass, through("triton", "2.51.0", seen))}, "there are passes through triton 2.51.0", ""},
		"another server":            {policy.ServedRule{By: "triton"}, []evidence.Claim{bare, parity(r, e, 2, evidence.VerdictPass, through("mlserver", "1.7.1", seen))}, "there are passes through mlserver 1.7.1", ""},
		"bytes not seen":            {policy.ServedRule{By: "triton"}, []evidence.Claim{bare, parity(r, e, 2, evidence.VerdictPass, through("triton", "2.51.0", !seen))}, "no pass through triton", ""},
		"a server alone":            {policy.ServedRule{}, []evidence.Claim{parity(r, e, 2, evidence.VerdictPass, through("triton", "2.51.0", seen))}, "", "no report of a trusted verifier"},
		"a server alone, asked for": {policy.ServedRule{By: "triton"}, []evidence.Claim{parity(r, e, 2, evidence.VerdictPass, through("triton", "2.51.0", seen))}, "", "no report of a trusted verifier"},
		"a failure through a server that nobody asks for": {policy.ServedRule{}, []evidence.Claim{bare, parity(r, e, 2, evidence.VerdictFail, through("triton", "2.51.0", seen))}, "", ""},
		"a failure through another server": {policy.ServedRule{By: "mlserver"}, []evidence.Claim{bare, parity(r, e, 2, evidence.VerdictFail, through("triton", "2.51.0", seen)),
			parity(r, e, 3, evidence.VerdictPass, through("mlserver", "1.7.1", seen))}, "", ""},
		"a failure after a pass": {policy.ServedRule{By: "triton"}, []evidence.Claim{bare, parity(r, e, 2, evidence.VerdictPass, through("triton", "2.51.0", seen)),
			parity(r, e, 3, evidence.VerdictFail, through("triton", "2.51.0", seen))}, `the triton 2.51.0 parity verdict is "fail"`, ""},
		"a failure that the runtime does not heal": {policy.ServedRule{By: "triton"}, []evidence.Claim{parity(r, e, 1, evidence.VerdictFail, through("triton", "2.51.0", seen)), parity(r, e, 2, evidence.VerdictPass, nil)},
			`the triton 2.51.0 parity verdict is "fail"`, ""},
		"a failure that the server heals": {policy.ServedRule{By: "triton"}, []evidence.Claim{bare, parity(r, e, 2, evidence.VerdictFail, through("triton", "2.51.0", seen)),
			parity(r, e, 3, evidence.VerdictPass, through("triton", "2.51.0", seen))}, "", ""},
		"a failure that a mended server heals": {policy.ServedRule{By: "triton"}, []evidence.Claim{bare, parity(r, e, 2, evidence.VerdictFail, through("triton", "2.51.0", seen)),
			parity(r, e, 3, evidence.VerdictPass, through("triton", "2.52.0", seen))}, "", ""},
		"a failure on the runtime that a server does not heal": {policy.ServedRule{}, []evidence.Claim{parity(r, e, 1, evidence.VerdictFail, nil),
			parity(r, e, 2, evidence.VerdictPass, through("triton", "2.51.0", seen))}, "", "fail"},
		"the runtime of a toolchain is a server": {policy.ServedRule{By: "triton"}, []evidence.Claim{parity(r, e, 1, evidence.VerdictPass, func(p *evidence.ParityReport) {
			through("triton", "2.51.0", seen)(p)
			p.Runtime.Name, p.Runtime.Version = e.Toolchain.Name, p.Node.Runtimes[e.Toolchain.Name]
		})}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := policy.Environment{Name: "prod", From: "staging", Require: []string{policy.RequireParity}, Served: c.rule}.Policy()
			p.Promotion.Restrictions = restriction.NoRestrictions()
			alone := r
			alone.Engines = alone.Engines[:1]
			alone.Order = nil
			unmet := map[string]string{}
			for _, req := range p.Check(alone, c.claims).Requirements {
				if !req.Met {
					unmet[req.Name] = req.Detail
				}
			}
			for requirement, want := range map[string]string{"served": c.served, "parity": c.parity} {
				detail, is := unmet[requirement]
				if is != (want != "") || !strings.Contains(detail, want) {
					t.Errorf("%s: unmet %t: %q, want %q", requirement, is, detail, want)
				}
			}
		})
	}
}

// Break-glass skips a pass through a server that is missing, and no failure through it.
func TestServedInAnEmergency(t *testing.T) {
	t.Parallel()
	r := sample()
	skips := func(b *evidence.BreakGlass) { b.Skips = []string{policy.RequireServed} }
	both := []evidence.Claim{breakGlass(r, "first", 9, skips), breakGlass(r, "second", 10, skips)}
	failed := parity(r, r.Engines[0], 2, evidence.VerdictFail, through("triton", "2.51.0", true))
	for name, c := range map[string]struct {
		more []evidence.Claim
		want string
	}{"no pass": {nil, ""}, "a failure": {[]evidence.Claim{failed}, "no later pass through triton"}} {
		p := emergency()
		p.Require, p.Accuracy, p.Served = []string{policy.RequireSignature, policy.RequireParity}, nil, policy.ServedRule{By: "triton"}
		p.BreakGlass = []string{policy.RequireServed}
		d := p.Check(r, append(append(enough(r), both...), c.more...))
		if got := unmet(d); d.Allowed() != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: allowed %t, unmet %q, want %q", name, d.Allowed(), got, c.want)
		}
	}
}
