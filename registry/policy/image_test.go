package policy_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/policy"
	"mlpromote.dev/mlpromote/registry/restriction"
)

// imaged is the sample release with an image form of each engine, which its builder signed.
func imaged() (artifact.Release, []evidence.Claim) {
	r := sample()
	for i := range r.Engines {
		r.Engines[i].Image = artifact.Image{Digest: digest.FromString("image of " + r.Engines[i].Label()), Size: 500}
	}
	claims := inProd(r)
	for _, e := range r.Engines {
		claims = append(claims, signature(e.Image.Digest))
	}
	return r, claims
}

// An image form is judged with its engine: it has no requirement of its own, and an engine without its signature, its place
// in the summary, or with a quarantine of it, does not stand.
func TestImagesAreJudgedWithTheirEngines(t *testing.T) {
	t.Parallel()
	r, good := imaged()
	bad := r.Engines[1]
	withoutImages, _ := imaged()
	for i := range withoutImages.Engines {
		withoutImages.Engines[i].Image = artifact.Image{}
	}
	before := all(enough(r))
	for _, e := range r.Engines {
		before = append(before, signature(e.Image.Digest))
	}
	for _, c := range []struct {
		name   string
		claims []evidence.Claim
		want   string // part of what is unmet; empty: all is met
	}{
		{"as it was promoted", good, ""},
		{"no signature of the image", without(good, is(evidence.PredicateSign, bad.Image.Digest)), "signature of x86/int8: no signature of a trusted builder about its image form " + string(bad.Image.Digest)},
		{"a signature by a stranger", append(without(good, is(evidence.PredicateSign, bad.Image.Digest)), claim(evidence.PredicateSign, bad.Image.Digest, "stranger", "", struct{}{})), "signature of x86/int8"},
		{"a quarantine of the image", append(slices.Clone(good), quarantine(bad.Image.Digest)), "no-quarantine of x86/int8"},
		{"a quarantine of the other image", append(slices.Clone(good), quarantine(r.Engines[0].Image.Digest)), ""},
		{"a summary without images", append(slices.Clone(before), recorded(4, vsa(withoutImages, 4, func(_ *evidence.VSA, c *evidence.Claim) { c.Signer = "promoter-key" }))), "summary of release"},
	} {
		d := policy.CheckEngineStanding(prodURI, r, bad, c.claims, restriction.NoRestrictions())
		if got := unmet(d); d.Allowed() != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: unmet is %q, want %q", c.name, got, c.want)
		}
	}
	if names := len(strictest().Check(r, good).Requirements); names != len(strictest().Check(withoutImages, good).Requirements) {
		t.Errorf("%d requirements with image forms, and another number without", names)
	}
	prod := policy.Environment{Name: "prod", From: "staging", Require: policy.DefaultRequire()}
	if d := prod.Policy().Check(r, without(good, is(evidence.PredicateSign, bad.Image.Digest))); d.Allowed() {
		t.Error("a release with an unsigned image form can be promoted")
	}
}
