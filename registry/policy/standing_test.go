package policy_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/policy"
	"mlpromote.dev/mlpromote/registry/restriction"
)

// inProd are the claims of a release that was promoted to prod, all recorded.
func inProd(r artifact.Release) []evidence.Claim {
	summary := vsa(r, 4, func(_ *evidence.VSA, c *evidence.Claim) { c.Signer = "promoter-key" })
	return append(all(enough(r)), recorded(4, summary))
}

// Missing proofs that a promotion today would need take nothing from nodes. Evidence against a
// release does.
func TestCheckStanding(t *testing.T) {
	t.Parallel()
	r := sample()
	bad := r.Engines[1]
	good := inProd(r)
	with := func(c ...evidence.Claim) []evidence.Claim { return append(slices.Clone(good), c...) }
	failure := recorded(7, parity(r, bad, 7, evidence.VerdictFail, nil))
	for _, c := range []struct {
		name   string
		claims []evidence.Claim
		want   string // part of the unmet requirement of the second engine; empty: all are met
	}{
		{"as it was promoted", good, ""},
		{"no report", without(good, is(evidence.PredicateParity, bad.Digest)), ""},
		{"no provenance", without(good, is(evidence.PredicateProvenance, bad.Digest)), ""},
		{"verifier retired", inState(good, verifier, evidence.KeyRetired, 1), ""},
		{"verifier revoked", inState(good, verifier, evidence.KeyRevoked, 0), ""},
		{"builder retired", inState(good, builder, evidence.KeyRetired, 1), ""},
		{"builder revoked", inState(good, builder, evidence.KeyRevoked, 0), "signature of x86/int8"},
		{"promoter retired after", inState(good, "promoter-key", evidence.KeyRetired, 5), ""},
		{"promoter retired before", inState(good, "promoter-key", evidence.KeyRetired, 4), "summary of release"},
		{"the builder's window ended", in(good, builder, evidence.Window{Until: hour(1)}, time.Time{}), ""},
		{"the promoter's window ended after", in(good, "promoter-key", evidence.Window{Until: hour(5)}, time.Time{}), ""},
		{"the promoter's window ended before", in(good, "promoter-key", evidence.Window{Until: hour(4)}, time.Time{}), "summary of release"},
		{"promoter revoked", inState(good, "promoter-key", evidence.KeyRevoked, 0), "summary of release"},
		{"no summary", without(good, is(evidence.PredicateVSA, r.Digest)), "summary of release: no verification summary of a trusted promoter for " + prodURI},
		{"no signature", without(good, is(evidence.PredicateSign, bad.Digest)), "signature of x86/int8"},
		{"quarantine of the release", with(quarantine(r.Digest)), "no-quarantine of release"},
		{"quarantine of the engine", with(quarantine(bad.Digest)), "no-quarantine of x86/int8"},
		{"quarantine of the other engine", with(quarantine(r.Engines[0].Digest)), ""},
		{"a failure after", with(failure), "no-failure of x86/int8"},
		{"an undecided report that ran no case", with(recorded(7, parity(r, bad, 7, evidence.VerdictUndecided,
			func(p *evidence.ParityReport) { p.Cases.Ran = 0 }))), "no-failure of x86/int8"},
		{"too slow", with(recorded(7, performance(r, bad, 7, evidence.VerdictFail))), "no-failure of x86/int8"},
		{"a failure of the other engine", with(recorded(7, parity(r, r.Engines[0], 7, evidence.VerdictFail, nil))), ""},
		{"a failure that was healed", with(failure, recorded(9, parity(r, bad, 9, evidence.VerdictPass, nil))), ""},
		{"a failure by a verifier retired since", inState(with(failure), verifier, evidence.KeyRetired, 8), "no-failure of x86/int8"},
		{"a failure by a verifier revoked since", inState(with(failure), verifier, evidence.KeyRevoked, 0), "no-failure of x86/int8"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			d := policy.CheckEngineStanding(prodURI, r, bad, c.claims, restriction.NoRestrictions())
			if got := unmet(d); d.Allowed() != (c.want == "") || !strings.Contains(got, c.want) {
				t.Errorf("unmet is %q, want %q", got, c.want)
			}
			if whole := policy.CheckStanding(prodURI, r, c.claims, restriction.NoRestrictions()); c.want != "" && whole.Allowed() {
				t.Errorf("the whole release stands, but its engine does not: %q", c.want)
			}
		})
	}
	if d := policy.CheckEngineStanding("oci://local/staging/vision/digits", r, bad, good, restriction.NoRestrictions()); d.Allowed() {
		t.Error("a summary for prod lets the engine into staging")
	}
	if d := policy.CheckStanding(prodURI, r, good, restriction.NoRestrictions()); !d.Allowed() {
		t.Errorf("the whole release: unmet %q", unmet(d))
	}
	if policy.CheckStanding(prodURI, artifact.Release{}, nil, restriction.NoRestrictions()).Allowed() {
		t.Error("the zero release stands")
	}
	if policy.CheckEngineStanding(prodURI, r, artifact.Engine{}, good, restriction.NoRestrictions()).Allowed() {
		t.Error("the zero engine stands")
	}
}

// A release that was promoted stands, whatever the policy requires now.
func TestAdmissionIsMoreThanStanding(t *testing.T) {
	t.Parallel()
	r := sample()
	r.Engines[0].Operators = []artifact.Operators{{Path: "operators/a.so", Digest: r.Limits}}
	for _, e := range r.Engines {
		if d := policy.CheckEngineStanding(prodURI, r, e, inProd(r), restriction.NoRestrictions()); !d.Allowed() {
			t.Errorf("%s: unmet %q", e.Label(), unmet(d))
		}
	}
	prod := policy.Environment{Name: "prod", From: "staging", Require: policy.DefaultRequire()}
	if d := prod.Policy().Check(r, inProd(r)); d.Allowed() {
		t.Error("a release with operator libraries that are not allowed can be promoted")
	}
}

func TestCheckUnpromoted(t *testing.T) {
	t.Parallel()
	r := sample()
	e := r.Engines[0]
	good := []evidence.Claim{signature(e.Digest)}
	for _, c := range []struct {
		name   string
		claims []evidence.Claim
		want   string
	}{
		{"signed", good, ""},
		{"nothing", nil, "signature of x86/fp32"},
		{"builder retired, signature without a time", inState(good, builder, evidence.KeyRetired, 23), "signature of x86/fp32"},
		{"builder revoked", inState(good, builder, evidence.KeyRevoked, 0), "signature of x86/fp32"},
		{"quarantine of the engine", append(slices.Clone(good), quarantine(e.Digest)), "no-quarantine of x86/fp32"},
		{"quarantine of the release", append(slices.Clone(good), quarantine(r.Digest)), "no-quarantine of release"},
		{"failed", append(slices.Clone(good), parity(r, e, 1, evidence.VerdictFail, nil)), "no-failure of x86/fp32"},
	} {
		if got := unmet(policy.CheckUnpromoted(r, e, c.claims, restriction.NoRestrictions())); (got == "") != (c.want == "") ||
			!strings.Contains(got, c.want) {
			t.Errorf("%s: unmet is %q, want %q", c.name, got, c.want)
		}
	}
}
