package policy_test

import (
	"slices"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/policy"
)

const prodURI = "oci://local/prod/vision/digits"

// vsa is the claim that a release met the policy of prod at an hour.
func vsa(r artifact.Release, hour int, edit func(v *evidence.VSA, c *evidence.Claim)) evidence.Claim {
	v := evidence.VSA{
		TimeVerified: time.Date(2026, 1, 1, hour, 0, 0, 0, time.UTC), ResourceURI: prodURI,
		VerificationResult: evidence.VSAPassed, SLSAVersion: "1.0",
	}
	c := evidence.Claim{Bundle: digest.FromString(time.Duration(hour).String()),
		Subject: r.Digest, Roles: []evidence.Role{evidence.RolePromoter}, Key: evidence.KeyTrusted}
	c.Statement.PredicateType = evidence.PredicateVSA
	for _, s := range r.Subjects() {
		c.Statement.Subject = append(c.Statement.Subject, evidence.StatementSubject{Digest: evidence.NewDigestSet(s.Digest)})
	}
	edit(&v, &c)
	body, err := registry.CanonicalJSON(v)
	if err != nil {
		panic(err)
	}
	if c.Statement.Predicate == nil {
		c.Statement.Predicate = body
	}
	return c
}

func TestFindVSA(t *testing.T) {
	t.Parallel()
	r := artifact.Release{Digest: digest.FromString("release"), Engines: []artifact.Engine{engine("x86", "int8", "1"), engine("x86", "fp32", "1")}}
	asIs := func(*evidence.VSA, *evidence.Claim) {}
	good := vsa(r, 3, asIs)
	wrong := map[string]func(v *evidence.VSA, c *evidence.Claim){
		"other environment":  func(v *evidence.VSA, _ *evidence.Claim) { v.ResourceURI = "oci://local/staging/vision/digits" },
		"other model":        func(v *evidence.VSA, _ *evidence.Claim) { v.ResourceURI += "2" },
		"prefix of it":       func(v *evidence.VSA, _ *evidence.Claim) { v.ResourceURI = "oci://local/prod/" },
		"failed":             func(v *evidence.VSA, _ *evidence.Claim) { v.VerificationResult = "FAILED" },
		"no result":          func(v *evidence.VSA, _ *evidence.Claim) { v.VerificationResult = "" },
		"not all engines":    func(_ *evidence.VSA, c *evidence.Claim) { c.Statement.Subject = c.Statement.Subject[:2] },
		"not the release":    func(_ *evidence.VSA, c *evidence.Claim) { c.Statement.Subject = c.Statement.Subject[1:] },
		"attached elsewhere": func(_ *evidence.VSA, c *evidence.Claim) { c.Subject = digest.FromString("another release") },
		"key revoked":        func(_ *evidence.VSA, c *evidence.Claim) { c.Key = evidence.KeyRevoked },
		"key in no state":    func(_ *evidence.VSA, c *evidence.Claim) { c.Key = "" },
		"key in two spellings": func(_ *evidence.VSA, c *evidence.Claim) {
			c.Statement.Predicate = []byte(`{"resourceUri":"` + prodURI + `","verificationResult":"FAILED","VerificationResult":"PASSED"}`)
		},
		"wrong role": func(_ *evidence.VSA, c *evidence.Claim) {
			c.Roles = []evidence.Role{evidence.RoleBuilder, evidence.RoleVerifier}
		},
		"no role":             func(_ *evidence.VSA, c *evidence.Claim) { c.Roles = nil },
		"other predicate":     func(_ *evidence.VSA, c *evidence.Claim) { c.Statement.PredicateType = evidence.PredicateProvenance },
		"predicate is no VSA": func(_ *evidence.VSA, c *evidence.Claim) { c.Statement.Predicate = []byte(`"x"`) },
	}
	for name, edit := range wrong {
		bad := vsa(r, 9, edit)
		if found, _, ok := policy.FindVSA([]evidence.Claim{bad}, r, prodURI); ok || found.Bundle != "" {
			t.Errorf("%s: a summary was found", name)
		}
		found, _, ok := policy.FindVSA([]evidence.Claim{bad, good, bad}, r, prodURI)
		if !ok || found.Bundle != good.Bundle {
			t.Errorf("%s: the good summary beside it was not found", name)
		}
	}
	if _, _, ok := policy.FindVSA(nil, r, prodURI); ok {
		t.Error("a summary was found among none")
	}
	claims := []evidence.Claim{vsa(r, 2, asIs), vsa(r, 5, asIs), good}
	for range claims {
		claims = append(claims[1:], claims[0])
		if found, summary, ok := policy.FindVSA(slices.Clone(claims), r, prodURI); !ok ||
			summary.TimeVerified.Hour() != 5 || found.Bundle != digest.FromString(time.Duration(5).String()) {
			t.Errorf("the summary of hour %d was found, want that of 5", summary.TimeVerified.Hour())
		}
	}
}
