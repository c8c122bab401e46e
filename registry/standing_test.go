package registry_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"mlpromote.dev/mlpromote/registry"
)

// inProd are the claims of a release that was promoted to prod, all recorded.
func inProd(r registry.Release) []registry.Claim {
	summary := vsa(r, 4, func(_ *registry.VSA, c *registry.Claim) { c.Signer = "promoter-key" })
	return append(all(enough(r)), recorded(4, summary))
}

// Missing proofs that a promotion today would need take nothing from nodes. Evidence against a
// release does.
func TestCheckStanding(t *testing.T) {
	t.Parallel()
	r := sample()
	bad := r.Engines[1]
	good := inProd(r)
	with := func(c ...registry.Claim) []registry.Claim { return append(slices.Clone(good), c...) }
	failure := recorded(7, parity(r, bad, 7, registry.VerdictFail, nil))
	for _, c := range []struct {
		name   string
		claims []registry.Claim
		want   string // part of the unmet requirement of the second engine; empty: all are met
	}{
		{"as it was promoted", good, ""},
		{"no report", without(good, is(registry.PredicateParity, bad.Digest)), ""},
		{"no provenance", without(good, is(registry.PredicateProvenance, bad.Digest)), ""},
		{"verifier retired", inState(good, verifier, registry.KeyRetired, 1), ""},
		{"verifier revoked", inState(good, verifier, registry.KeyRevoked, 0), ""},
		{"builder retired", inState(good, builder, registry.KeyRetired, 1), ""},
		{"builder revoked", inState(good, builder, registry.KeyRevoked, 0), "signature of x86/int8"},
		{"promoter retired after", inState(good, "promoter-key", registry.KeyRetired, 5), ""},
		{"promoter retired before", inState(good, "promoter-key", registry.KeyRetired, 4), "summary of release"},
		{"the builder's window ended", in(good, builder, registry.Window{Until: hour(1)}, time.Time{}), ""},
		{"the promoter's window ended after", in(good, "promoter-key", registry.Window{Until: hour(5)}, time.Time{}), ""},
		{"the promoter's window ended before", in(good, "promoter-key", registry.Window{Until: hour(4)}, time.Time{}), "summary of release"},
		{"promoter revoked", inState(good, "promoter-key", registry.KeyRevoked, 0), "summary of release"},
		{"no summary", without(good, is(registry.PredicateVSA, r.Digest)), "summary of release: no verification summary of a trusted promoter for " + prodURI},
		{"no signature", without(good, is(registry.PredicateSign, bad.Digest)), "signature of x86/int8"},
		{"quarantine of the release", with(quarantine(r.Digest)), "no-quarantine of release"},
		{"quarantine of the engine", with(quarantine(bad.Digest)), "no-quarantine of x86/int8"},
		{"quarantine of the other engine", with(quarantine(r.Engines[0].Digest)), ""},
		{"a failure after", with(failure), "no-failure of x86/int8"},
		{"an undecided report that ran no case", with(recorded(7, parity(r, bad, 7, registry.VerdictUndecided,
			func(p *registry.ParityReport) { p.Cases.Ran = 0 }))), "no-failure of x86/int8"},
		{"too slow", with(recorded(7, performance(r, bad, 7, registry.VerdictFail))), "no-failure of x86/int8"},
		{"a failure of the other engine", with(recorded(7, parity(r, r.Engines[0], 7, registry.VerdictFail, nil))), ""},
		{"a failure that was healed", with(failure, recorded(9, parity(r, bad, 9, registry.VerdictPass, nil))), ""},
		{"a failure by a verifier retired since", inState(with(failure), verifier, registry.KeyRetired, 8), "no-failure of x86/int8"},
		{"a failure by a verifier revoked since", inState(with(failure), verifier, registry.KeyRevoked, 0), "no-failure of x86/int8"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			d := registry.CheckEngineStanding(prodURI, r, bad, c.claims, registry.NoRestrictions())
			if got := unmet(d); d.Allowed() != (c.want == "") || !strings.Contains(got, c.want) {
				t.Errorf("unmet is %q, want %q", got, c.want)
			}
			if whole := registry.CheckStanding(prodURI, r, c.claims, registry.NoRestrictions()); c.want != "" && whole.Allowed() {
				t.Errorf("the whole release stands, but its engine does not: %q", c.want)
			}
		})
	}
	if d := registry.CheckEngineStanding("oci://local/staging/vision/digits", r, bad, good, registry.NoRestrictions()); d.Allowed() {
		t.Error("a summary for prod lets the engine into staging")
	}
	if d := registry.CheckStanding(prodURI, r, good, registry.NoRestrictions()); !d.Allowed() {
		t.Errorf("the whole release: unmet %q", unmet(d))
	}
	if registry.CheckStanding(prodURI, registry.Release{}, nil, registry.NoRestrictions()).Allowed() {
		t.Error("the zero release stands")
	}
	if registry.CheckEngineStanding(prodURI, r, registry.Engine{}, good, registry.NoRestrictions()).Allowed() {
		t.Error("the zero engine stands")
	}
}

// A release that was promoted stands, whatever the policy requires now.
func TestAdmissionIsMoreThanStanding(t *testing.T) {
	t.Parallel()
	r := sample()
	r.Engines[0].Operators = []registry.Operators{{Path: "operators/a.so", Digest: r.Limits}}
	for _, e := range r.Engines {
		if d := registry.CheckEngineStanding(prodURI, r, e, inProd(r), registry.NoRestrictions()); !d.Allowed() {
			t.Errorf("%s: unmet %q", e.Label(), unmet(d))
		}
	}
	prod := registry.Environment{Name: "prod", From: "staging", Require: registry.DefaultRequire()}
	if d := prod.Policy().Check(r, inProd(r)); d.Allowed() {
		t.Error("a release with operator libraries that are not allowed can be promoted")
	}
}

func TestCheckUnpromoted(t *testing.T) {
	t.Parallel()
	r := sample()
	e := r.Engines[0]
	good := []registry.Claim{signature(e.Digest)}
	for _, c := range []struct {
		name   string
		claims []registry.Claim
		want   string
	}{
		{"signed", good, ""},
		{"nothing", nil, "signature of x86/fp32"},
		{"builder retired, signature without a time", inState(good, builder, registry.KeyRetired, 23), "signature of x86/fp32"},
		{"builder revoked", inState(good, builder, registry.KeyRevoked, 0), "signature of x86/fp32"},
		{"quarantine of the engine", append(slices.Clone(good), quarantine(e.Digest)), "no-quarantine of x86/fp32"},
		{"quarantine of the release", append(slices.Clone(good), quarantine(r.Digest)), "no-quarantine of release"},
		{"failed", append(slices.Clone(good), parity(r, e, 1, registry.VerdictFail, nil)), "no-failure of x86/fp32"},
	} {
		if got := unmet(registry.CheckUnpromoted(r, e, c.claims, registry.NoRestrictions())); (got == "") != (c.want == "") ||
			!strings.Contains(got, c.want) {
			t.Errorf("%s: unmet is %q, want %q", c.name, got, c.want)
		}
	}
}
