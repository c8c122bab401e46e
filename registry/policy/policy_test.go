package policy_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"
	"pgregory.net/rapid"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/policy"
	"mlpromote.dev/mlpromote/registry/restriction"
)

// unmet writes what is unmet, as "name of subject: detail", a line for each.
func unmet(d policy.Decision) string {
	var out []string
	for _, r := range d.Unmet() {
		out = append(out, r.Name+" of "+r.Subject+": "+r.Detail)
	}
	return strings.Join(out, "\n")
}

// without drops the claims that match.
func without(claims []evidence.Claim, drop func(evidence.Claim) bool) []evidence.Claim {
	return slices.DeleteFunc(slices.Clone(claims), drop)
}

// is picks the claims of a predicate type about a subject.
func is(predicateType string, subject registry.Digest) func(evidence.Claim) bool {
	return func(c evidence.Claim) bool { return c.Statement.PredicateType == predicateType && c.Subject == subject }
}

func TestZeroValuesRefuse(t *testing.T) {
	t.Parallel()
	r := sample()
	if (policy.Decision{}).Allowed() {
		t.Error("the zero Decision allows")
	}
	if (policy.Policy{}).Check(r, enough(r)).Allowed() {
		t.Error("the zero Policy allows")
	}
	bare := r
	bare.Engines = nil
	for _, name := range strictest().Require {
		p := policy.Policy{Require: []string{name}}
		if d := p.Check(artifact.Release{}, nil); d.Allowed() {
			t.Errorf("%s allows the zero Release", name)
		}
		if d := p.Check(r, nil); name != policy.RequireSeparateRoles && d.Allowed() {
			t.Errorf("%s allows without a claim", name)
		}
		if d := p.Check(bare, enough(r)); name != policy.RequireSignature && d.Allowed() {
			t.Errorf("%s allows a release without engines", name)
		}
	}
	if d := (policy.Policy{Require: []string{"signature", "unheard of"}}).Check(r, enough(r)); d.Allowed() {
		t.Error("a requirement that nobody knows is met")
	}
}

func TestCheckAllows(t *testing.T) {
	t.Parallel()
	r := sample()
	d := strictest().Check(r, enough(r))
	if !d.Allowed() || len(d.Ignored) != 0 {
		t.Fatalf("the evidence that is enough: unmet %q, ignored %v", unmet(d), d.Ignored)
	}
	if len(d.Requirements) != 3+3+2+2+2+2 { // quarantine and signature of 3 subjects, four more of 2 engines
		t.Errorf("got %d requirements: %+v", len(d.Requirements), d.Requirements)
	}
	cited := make(map[registry.Digest]bool)
	for _, req := range d.Requirements {
		for _, e := range req.Evidence {
			cited[e] = true
		}
	}
	for _, c := range enough(r) {
		if !cited[c.Bundle] {
			t.Errorf("no requirement cites %s of %s", c.Statement.PredicateType, c.Subject)
		}
	}
}

func TestCheckRefuses(t *testing.T) {
	t.Parallel()
	r := sample()
	e := r.Engines[1]
	all := enough(r)
	noParity := without(all, is(evidence.PredicateParity, e.Digest))
	with := func(c ...evidence.Claim) []evidence.Claim { return append(slices.Clone(noParity), c...) }
	edited := func(edit func(p *evidence.ParityReport)) []evidence.Claim {
		return with(parity(r, e, 1, evidence.VerdictPass, edit))
	}
	pass := parity(r, e, 1, evidence.VerdictPass, nil)
	fail := func(hour int) evidence.Claim {
		return parity(r, e, hour, evidence.VerdictFail, func(p *evidence.ParityReport) { p.Reasons = []evidence.Reason{{Message: "cosine 0.9"}} })
	}
	other := func(hour int, v evidence.Verdict) evidence.Claim {
		return parity(r, e, hour, v, func(p *evidence.ParityReport) { p.Node.CPU.Model = "second" })
	}
	for _, c := range []struct {
		name   string
		claims []evidence.Claim
		want   string // part of what is unmet; empty: nothing is
	}{
		{"as it was", with(pass), ""},
		{"no signature of the release", without(all, is(evidence.PredicateSign, r.Digest)), "signature of release: no signature"},
		{"no signature of an engine", without(all, is(evidence.PredicateSign, e.Digest)), "signature of x86/int8: no signature"},
		{"no provenance", without(all, is(evidence.PredicateProvenance, e.Digest)), "provenance of x86/int8: no provenance"},
		{"no report", noParity, "parity of x86/int8: no report of a trusted verifier"},
		{"fail", with(fail(1)), `verdict is "fail": cosine 0.9`},
		{"undecided", with(parity(r, e, 1, evidence.VerdictUndecided, nil)), `verdict is "undecided"`},
		{"no verdict", with(parity(r, e, 1, "", nil)), `verdict is ""`},
		{"recorded is no pass of parity", with(parity(r, e, 1, evidence.VerdictRecorded, nil)), `verdict is "recorded"`},
		{"verdict in capitals", with(parity(r, e, 1, "PASS", nil)), `cannot be read: verdict "PASS": want pass`},
		{"later fail on the same kind", with(pass, fail(2)), "parity of x86/int8"},
		{"later fail that stands first", with(fail(2), pass), "parity of x86/int8"},
		{"fail of the same time", with(fail(1), pass), "parity of x86/int8"},
		{"fail of the same time, the other way", with(pass, fail(1)), "parity of x86/int8"},
		{"later pass heals", with(fail(0), pass), ""},
		{"later pass heals, the other way", with(pass, fail(0)), ""},
		{"fail on another kind", with(pass, other(0, evidence.VerdictFail)), "parity of x86/int8"},
		{"pass on another kind heals nothing", with(fail(1), other(2, evidence.VerdictPass)), "parity of x86/int8"},
		{"pass on both kinds", with(pass, other(2, evidence.VerdictPass)), ""},
		{"other limits", edited(func(p *evidence.ParityReport) { p.Limits = evidence.NewDigestSet(r.Sources) }), "other limits"},
		{"no limits", edited(func(p *evidence.ParityReport) { p.Limits = nil }), "other limits"},
		{"other sources", edited(func(p *evidence.ParityReport) { p.Sources = evidence.NewDigestSet(r.Limits) }), "other sources"},
		{"other reference", edited(func(p *evidence.ParityReport) { p.Reference = evidence.NewDigestSet(r.Limits) }), "other sources"},
		{"other hardware", edited(func(p *evidence.ParityReport) { p.Node.CPU.Level = "v2" }), "not the target: cpu.level"},
		{"other runtime", edited(func(p *evidence.ParityReport) { p.Node.Runtimes["onnxruntime"] = "1.29.0" }), "not the target: runtimes.onnxruntime"},
		{"no node", edited(func(p *evidence.ParityReport) { p.Node = artifact.Node{} }), "not the target"},
		{"fewer cases", edited(func(p *evidence.ParityReport) { p.Cases.Ran = 9 }), "it ran 9 of 10 cases"},
		{"more cases than there are", edited(func(p *evidence.ParityReport) { p.Cases.Ran = 11 }), "it ran 11 of 10 cases"},
		{"no cases", edited(func(p *evidence.ParityReport) { p.Cases = evidence.CasesRun{Origin: artifact.OriginRecorded} }), "it ran 0 of 0 cases"},
		{"fewer than no cases", edited(func(p *evidence.ParityReport) { p.Cases.Ran, p.Cases.Count = -1, -1 }), "it ran -1 of -1 cases"},
		{"pass beside a failed limit", edited(func(p *evidence.ParityReport) {
			p.Checks = evidence.Checks{{Trial: evidence.TrialCases, Output: "y", Figure: "maxError", Verdict: evidence.VerdictFail}}
		}),
			`it says that it passed, but the verdict of its limit y maxError is "fail"`},
		{"pass beside an undecided limit", edited(func(p *evidence.ParityReport) {
			p.Checks = evidence.Checks{{Trial: evidence.TrialCases, Figure: "accuracy", Verdict: evidence.VerdictUndecided}}
		}),
			`the verdict of its limit accuracy is "undecided"`},
		{"pass beside a limit without a verdict", edited(func(p *evidence.ParityReport) {
			p.Checks = evidence.Checks{{Trial: evidence.TrialCases, Figure: "accuracy"}}
		}), `the verdict of its limit accuracy is ""`},
		{"pass beside limits that held", edited(func(p *evidence.ParityReport) {
			p.Checks = evidence.Checks{{Trial: evidence.TrialCases, Figure: "accuracy", Verdict: evidence.VerdictPass}}
		}), ""},
		{"pass beside a failed consistency check", edited(func(p *evidence.ParityReport) {
			p.Checks = evidence.Checks{{Trial: evidence.TrialBatch, Size: "batch=2", Verdict: evidence.VerdictFail}}
		}), `it says that it passed, but the verdict of its check batch batch=2 is "fail"`},
		{"pass beside a plain load that fails", edited(func(p *evidence.ParityReport) {
			p.Checks = evidence.Checks{{Trial: evidence.TrialPlainLoad, Verdict: evidence.VerdictFail}}
		}), `the verdict of its check plain load is "fail"`},
		{"pass beside golden outputs that were not compared", edited(func(p *evidence.ParityReport) {
			p.Checks = evidence.Checks{{Trial: evidence.TrialGolden, Verdict: evidence.VerdictUndecided}}
		}), "nothing compared its golden outputs"},
		{"pass beside a trial that did not run", edited(func(p *evidence.ParityReport) {
			p.Checks = evidence.Checks{{Trial: evidence.TrialBatch, Verdict: evidence.VerdictUndecided}, {Trial: evidence.TrialRepeat, Verdict: evidence.VerdictRecorded}}
		}), ""},
		{"pass beside a trial without a verdict", edited(func(p *evidence.ParityReport) {
			p.Checks = evidence.Checks{{Trial: evidence.TrialBatch}}
		}), `the verdict of its check batch is ""`},
		{"pass beside an undecided check of no trial", edited(func(p *evidence.ParityReport) {
			p.Checks = evidence.Checks{{Figure: "accuracy", Verdict: evidence.VerdictUndecided}}
		}), `the verdict of its check accuracy is "undecided"`},
		{"pass without a version of rules", edited(func(p *evidence.ParityReport) { p.Rules = 0 }), "no report counts: its rules are of version 0, and this program knows version 1"},
		{"pass by later rules", edited(func(p *evidence.ParityReport) { p.Rules = 2 }), "no report counts: its rules are of version 2"},
		{"pass that stopped early", edited(func(p *evidence.ParityReport) { p.EarlyStop = []byte(`{"rule":"e"}`) }), "it stopped early by a rule that this version does not know"},
		{"generated cases", edited(func(p *evidence.ParityReport) { p.Cases.Origin = artifact.OriginGenerated }), "recorded-cases of x86/int8: its cases are generated"},
		{"cases of no origin", edited(func(p *evidence.ParityReport) { p.Cases.Origin = "" }), "recorded-cases of x86/int8"},
		{"fail by other limits blocks nothing", with(pass, parity(r, e, 5, evidence.VerdictFail, func(p *evidence.ParityReport) { p.Limits = nil })), ""},
		{"stale pass heals nothing", with(fail(1), parity(r, e, 5, evidence.VerdictPass, func(p *evidence.ParityReport) { p.Limits = nil })), `verdict is "fail"`},
		{"no report but nonsense", with(claim(evidence.PredicateParity, e.Digest, verifier, evidence.RoleVerifier, []int{1})),
			"a parity report of a trusted verifier cannot be read: it is not a JSON object"},
		{"nonsense beside a pass", with(pass, claim(evidence.PredicatePerformance, e.Digest, verifier, evidence.RoleVerifier, []int{1})),
			"a performance report of a trusted verifier cannot be read"},
		{"failed before any case ran", with(pass, parity(r, e, 2, evidence.VerdictFail, func(p *evidence.ParityReport) { p.Cases.Ran = 0 })), `verdict is "fail"`},
		{"undecided after some cases", with(pass, parity(r, e, 2, evidence.VerdictUndecided, func(p *evidence.ParityReport) { p.Cases.Ran = 3 })), `verdict is "undecided"`},
		{"failed without cases", with(pass, parity(r, e, 2, evidence.VerdictFail, func(p *evidence.ParityReport) { p.Cases = evidence.CasesRun{} })), `verdict is "fail"`},
		{"failed on a runtime that its node lacks",
			with(pass, parity(r, e, 2, evidence.VerdictFail, func(p *evidence.ParityReport) { p.Runtime.Name = "other"; p.Runtime.Version = "1" })),
			`verdict is "fail"`},
		{"failed on hardware that is not the target", with(pass, parity(r, e, 2, evidence.VerdictFail, func(p *evidence.ParityReport) { p.Node.CPU.Level = "v2" })), ""},
		{"incomplete pass heals nothing", with(fail(1), parity(r, e, 2, evidence.VerdictPass, func(p *evidence.ParityReport) { p.Cases.Ran = 9 })), `verdict is "fail"`},
		{"performance passed", with(pass, performance(r, e, 1, evidence.VerdictPass)), ""},
		{"performance recorded", with(pass, performance(r, e, 1, evidence.VerdictRecorded)), ""},
		{"performance failed", with(pass, performance(r, e, 1, evidence.VerdictFail)), `performance verdict is "fail"`},
		{"performance undecided", with(pass, performance(r, e, 1, evidence.VerdictUndecided)), `performance verdict is "undecided"`},
		{"later performance heals", with(pass, performance(r, e, 1, evidence.VerdictFail), performance(r, e, 2, evidence.VerdictPass)), ""},
		{"performance is no parity", with(performance(r, e, 1, evidence.VerdictPass)), "no report of a trusted verifier"},
		{"quarantine of the release", append(slices.Clone(all), quarantine(r.Digest)), "no-quarantine of release: in quarantine"},
		{"quarantine of an engine", append(slices.Clone(all), quarantine(e.Digest)), "no-quarantine of x86/int8: in quarantine"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := unmet(strictest().Check(r, c.claims))
			if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
				t.Errorf("unmet is %q, want %q", got, c.want)
			}
		})
	}
}

// What a signer may not say is ignored: it neither helps nor blocks.
func TestWhatDoesNotCount(t *testing.T) {
	t.Parallel()
	r := sample()
	e := r.Engines[1]
	pass := parity(r, e, 1, evidence.VerdictPass, nil)
	edit := func(c evidence.Claim, change func(*evidence.Claim)) evidence.Claim {
		change(&c)
		return c
	}
	for says, c := range map[string]evidence.Claim{
		"not trusted as verifier":   edit(pass, func(c *evidence.Claim) { c.Roles = []evidence.Role{evidence.RoleBuilder, evidence.RolePromoter} }),
		"not trusted as approver":   edit(quarantine(e.Digest), func(c *evidence.Claim) { c.Roles = nil }),
		"it is about something":     edit(pass, func(c *evidence.Claim) { c.Subject = digest.FromString("else") }),
		"does not name the subject": edit(pass, func(c *evidence.Claim) { c.Subject = r.Engines[0].Digest }),
		"has no meaning here":       edit(pass, func(c *evidence.Claim) { c.Statement.PredicateType = "https://example.com/x" }),
		"statement does not name":   edit(pass, func(c *evidence.Claim) { c.Statement.Subject = nil }),
		"not trusted as builder":    claim(evidence.PredicateSign, e.Digest, "stranger", "", struct{}{}),
		`signer stranger is not tr`: claim(evidence.PredicateQuarantine, r.Digest, "stranger", evidence.RoleVerifier, struct{}{}),
	} {
		accepted, ignored := evidence.Accept(r, []evidence.Claim{c})
		if len(accepted) != 0 || len(ignored) != 1 || !strings.Contains(ignored[0].Reason, says) {
			t.Errorf("want it ignored for %q; got accepted %v, ignored %+v", says, accepted, ignored)
		}
		claims := append(without(enough(r), is(evidence.PredicateParity, e.Digest)), c)
		if d := strictest().Check(r, claims); d.Allowed() || len(d.Ignored) != 1 {
			t.Errorf("%s: it counted as a pass", says)
		}
		if d := strictest().Check(r, append(enough(r), c)); !d.Allowed() {
			t.Errorf("%s: it blocked: %s", says, unmet(d))
		}
	}
}

func TestSeparateRoles(t *testing.T) {
	t.Parallel()
	r := sample()
	e := r.Engines[0]
	p := policy.Policy{Require: []string{policy.RequireSeparateRoles}}
	for name, c := range map[string]struct {
		claims []evidence.Claim
		want   string
	}{
		"separate":              {enough(r), ""},
		"no builder":            {without(enough(r), func(c evidence.Claim) bool { return c.Signer == builder }), "no builder's signature"},
		"builder verifies":      {append(enough(r), edited(parity(r, e, 0, evidence.VerdictPass, nil), builder)), "key builder-key belongs to a builder"},
		"verifier builds":       {append(enough(r), edited(provenance(e.Digest), verifier)), "key verifier-key belongs to a builder"},
		"builder measures":      {append(enough(r), edited(performance(r, e, 0, evidence.VerdictPass), builder)), "key builder-key belongs to a builder"},
		"builder approves":      {append(enough(r), edited(claim(evidence.PredicateApproval, e.Digest, "", evidence.RoleApprover, struct{}{}), builder)), "key builder-key"},
		"builder approves all":  {append(enough(r), edited(claim(evidence.PredicateApproval, r.Digest, "", evidence.RoleApprover, struct{}{}), builder)), "key builder-key"},
		"builder in quarantine": {append(enough(r), edited(quarantine(e.Digest), builder)), "no-quarantine"},
	} {
		if got := unmet(p.Check(r, c.claims)); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: unmet is %q, want %q", name, got, c.want)
		}
	}
}

// edited gives a claim another signer.
func edited(c evidence.Claim, signer string) evidence.Claim {
	c.Signer = signer
	return c
}

func TestTargetThatIsNotUnderstoodIsNotProven(t *testing.T) {
	t.Parallel()
	r := sample()
	r.Engines[0].Target.V = 2
	if got := unmet(policy.Policy{Require: policy.DefaultRequire()}.Check(r, enough(r))); !strings.Contains(got,
		"parity of x86/fp32: no report counts") {
		t.Errorf("unmet is %q, want the engine of another target version", got)
	}
}

func TestCheckEngine(t *testing.T) {
	t.Parallel()
	r := sample()
	good, bad := r.Engines[0], r.Engines[1]
	claims := append(enough(r), parity(r, bad, 2, evidence.VerdictFail, nil), quarantine(bad.Digest))
	if d := strictest().CheckEngine(r, good, claims); !d.Allowed() {
		t.Errorf("an engine suffers from another: %s", unmet(d))
	}
	if strictest().CheckEngine(r, bad, claims).Allowed() || strictest().Check(r, claims).Allowed() {
		t.Error("the failed engine is allowed")
	}
	if strictest().CheckEngine(r, good, append(claims, quarantine(r.Digest))).Allowed() {
		t.Error("an engine of a release in quarantine is allowed")
	}
	if len(r.Engines) != 2 {
		t.Error("the release was changed")
	}
}

func TestPolicyValidate(t *testing.T) {
	t.Parallel()
	for _, p := range []policy.Policy{{}, strictest(), {Require: policy.DefaultRequire()}} {
		if err := p.Validate(); err != nil {
			t.Errorf("%v: %v", p.Require, err)
		}
	}
}

func TestPolicyValidateRefuses(t *testing.T) {
	t.Parallel()
	library := digest.FromString("ops.so")
	for name, p := range map[string]policy.Policy{
		"an unknown requirement":      {Require: []string{"weather"}},
		"a requirement twice":         {Require: []string{policy.RequireParity, policy.RequireParity}},
		"a library that is no digest": {Operators: []registry.Digest{"ops.so"}},
		"a library twice":             {Operators: []registry.Digest{library, library}},
		"reports of a negative age":   {Reports: policy.ReportRule{MaxAge: -1}},
	} {
		if err := p.Validate(); !registry.HasCode(err, registry.CodeInvalid) {
			t.Errorf("%s: error %v, want CodeInvalid", name, err)
		}
	}
}

// drawPolicy asks for at least one thing.
func drawPolicy(t *rapid.T) policy.Policy {
	all := strictest().Require
	return policy.Policy{Require: rapid.SliceOfNDistinct(rapid.SampledFrom(all), 1, len(all), func(s string) string { return s }).Draw(t, "require")}
}

// needed says which requirement is lost with a claim.
func needed(p policy.Policy, c evidence.Claim) bool {
	asks := func(names ...string) bool {
		return slices.ContainsFunc(names, func(n string) bool { return slices.Contains(p.Require, n) })
	}
	switch c.Statement.PredicateType {
	case evidence.PredicateSign:
		return asks(policy.RequireSignature)
	case evidence.PredicateProvenance:
		return asks(policy.RequireProvenance)
	default:
		return asks(policy.RequireParity, policy.RequireRecordedCases)
	}
}

func TestEveryRequiredClaimIsRequired(t *testing.T) {
	t.Parallel()
	r := sample()
	rapid.Check(t, func(t *rapid.T) {
		p := drawPolicy(t)
		claims := rapid.Permutation(enough(r)).Draw(t, "claims")
		if d := p.Check(r, claims); !d.Allowed() {
			t.Fatalf("%v: unmet %s", p.Require, unmet(d))
		}
		i := rapid.IntRange(0, len(claims)-1).Draw(t, "removed")
		removed := claims[i]
		rest := slices.Delete(slices.Clone(claims), i, i+1)
		if got, want := p.Check(r, rest).Allowed(), !needed(p, removed); got != want {
			t.Fatalf("%v without %s of %s: allowed is %v, want %v", p.Require, removed.Statement.PredicateType, removed.Subject, got, want)
		}
	})
}

func TestJunkChangesNothing(t *testing.T) {
	t.Parallel()
	r := sample()
	rapid.Check(t, func(t *rapid.T) {
		p := drawPolicy(t)
		claims := enough(r)[rapid.IntRange(0, 2).Draw(t, "fewer"):]
		before := p.Check(r, claims)
		mixed := slices.Clone(claims)
		added := rapid.IntRange(1, 4).Draw(t, "junk")
		for range added {
			mixed = slices.Insert(mixed, rapid.IntRange(0, len(mixed)).Draw(t, "at"), drawJunk(t, r))
		}
		after := p.Check(r, mixed)
		if unmet(before) != unmet(after) || before.Allowed() != after.Allowed() || len(after.Ignored) != added {
			t.Fatalf("before: %q; after: %q; ignored %d of %d", unmet(before), unmet(after), len(after.Ignored), added)
		}
	})
}

// drawJunk is a claim that must not count, whatever it says.
func drawJunk(t *rapid.T, r artifact.Release) evidence.Claim {
	e := rapid.SampledFrom(r.Engines).Draw(t, "engine")
	c := rapid.SampledFrom([]evidence.Claim{
		signature(r.Digest), provenance(e.Digest), quarantine(e.Digest), quarantine(r.Digest),
		parity(r, e, 23, evidence.VerdictFail, nil), parity(r, e, 23, evidence.VerdictPass, nil), performance(r, e, 23, evidence.VerdictFail),
	}).Draw(t, "claim")
	role, _ := evidence.RoleFor(c.Statement.PredicateType)
	switch rapid.SampledFrom([]string{"role", "subject", "statement", "predicate"}).Draw(t, "fault") {
	case "role":
		c.Roles = slices.DeleteFunc(evidence.Roles(), func(have evidence.Role) bool { return have == role })
	case "subject":
		c.Subject = digest.FromString("another release")
	case "statement":
		c.Statement.Subject = []evidence.StatementSubject{{Digest: evidence.NewDigestSet(digest.FromString("another release"))}}
	case "predicate":
		c.Statement.PredicateType += "x"
	}
	return c
}

// An environment lets no library of operators in that it does not list, whatever else is
// proven of the engine.
func TestOperators(t *testing.T) {
	t.Parallel()
	first, second := digest.FromString("first"), digest.FromString("second")
	library := func(name string, d registry.Digest) artifact.Operators {
		return artifact.Operators{Path: "operators/" + name, Digest: d}
	}
	for _, c := range []struct {
		name    string
		carries []artifact.Operators
		allowed []registry.Digest
		want    string // part of what is unmet; empty: nothing is
	}{
		{"none", nil, nil, ""},
		{"none, some allowed", nil, []registry.Digest{first}, ""},
		{"denied by default", []artifact.Operators{library("a.so", first)}, nil,
			"operators of x86/int8: it carries native code that is not allowed here, operators/a.so (" + string(first) +
				"): build the model without it, or review its source and add the digest to operators: of this environment in environments.yaml"},
		{"allowed", []artifact.Operators{library("a.so", first)}, []registry.Digest{second, first}, ""},
		{"another of the name", []artifact.Operators{library("a.so", first)}, []registry.Digest{second}, "operators/a.so (" + string(first)},
		{"one of two", []artifact.Operators{library("a.so", first), library("b.so", second)}, []registry.Digest{first}, "operators/b.so (" + string(second)},
		{"both", []artifact.Operators{library("a.so", first), library("b.so", second)}, []registry.Digest{first, second}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := sample()
			r.Engines[1].Operators = c.carries
			demands := policy.Environment{Name: "prod", From: "staging", Require: policy.DefaultRequire(), Operators: c.allowed}.Policy()
			demands.Promotion.Restrictions = restriction.NoRestrictions()
			for what, d := range map[string]policy.Decision{
				"release": demands.Check(r, enough(r)), "engine": demands.CheckEngine(r, r.Engines[1], enough(r)),
			} {
				if d.Allowed() != (c.want == "") || !strings.Contains(unmet(d), c.want) {
					t.Errorf("%s: unmet %q, want %q", what, unmet(d), c.want)
				}
			}
			if d := demands.CheckEngine(r, r.Engines[0], enough(r)); !d.Allowed() {
				t.Errorf("the engine without operators: %q", unmet(d))
			}
		})
	}
	if d := (policy.Environment{Name: "prod", From: "staging"}).Policy().Check(sample(), enough(sample())); d.Allowed() {
		t.Error("an environment that asks for nothing allows")
	}
}
