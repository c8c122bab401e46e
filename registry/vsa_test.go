package registry_test

import (
	"slices"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry"
)

const prodURI = "oci://local/prod/vision/digits"

// vsa is the claim that a release met the policy of prod at an hour.
func vsa(r registry.Release, hour int, edit func(v *registry.VSA, c *registry.Claim)) registry.Claim {
	v := registry.VSA{
		TimeVerified: time.Date(2026, 1, 1, hour, 0, 0, 0, time.UTC), ResourceURI: prodURI,
		VerificationResult: registry.VSAPassed, SLSAVersion: registry.SLSAVersion,
	}
	c := registry.Claim{Bundle: digest.FromString(time.Duration(hour).String()),
		Subject: r.Digest, Roles: []registry.Role{registry.RolePromoter}, Key: registry.KeyTrusted}
	c.Statement.PredicateType = registry.PredicateVSA
	for _, s := range r.Subjects() {
		c.Statement.Subject = append(c.Statement.Subject, registry.StatementSubject{Digest: registry.NewDigestSet(s.Digest)})
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
	r := registry.Release{Digest: digest.FromString("release"), Engines: []registry.Engine{engine("x86", "int8", "1"), engine("x86", "fp32", "1")}}
	asIs := func(*registry.VSA, *registry.Claim) {}
	good := vsa(r, 3, asIs)
	wrong := map[string]func(v *registry.VSA, c *registry.Claim){
		"other environment":  func(v *registry.VSA, _ *registry.Claim) { v.ResourceURI = "oci://local/staging/vision/digits" },
		"other model":        func(v *registry.VSA, _ *registry.Claim) { v.ResourceURI += "2" },
		"prefix of it":       func(v *registry.VSA, _ *registry.Claim) { v.ResourceURI = "oci://local/prod/" },
		"failed":             func(v *registry.VSA, _ *registry.Claim) { v.VerificationResult = "FAILED" },
		"no result":          func(v *registry.VSA, _ *registry.Claim) { v.VerificationResult = "" },
		"not all engines":    func(_ *registry.VSA, c *registry.Claim) { c.Statement.Subject = c.Statement.Subject[:2] },
		"not the release":    func(_ *registry.VSA, c *registry.Claim) { c.Statement.Subject = c.Statement.Subject[1:] },
		"attached elsewhere": func(_ *registry.VSA, c *registry.Claim) { c.Subject = digest.FromString("another release") },
		"key revoked":        func(_ *registry.VSA, c *registry.Claim) { c.Key = registry.KeyRevoked },
		"key in no state":    func(_ *registry.VSA, c *registry.Claim) { c.Key = "" },
		"key in two spellings": func(_ *registry.VSA, c *registry.Claim) {
			c.Statement.Predicate = []byte(`{"resourceUri":"` + prodURI + `","verificationResult":"FAILED","VerificationResult":"PASSED"}`)
		},
		"wrong role": func(_ *registry.VSA, c *registry.Claim) {
			c.Roles = []registry.Role{registry.RoleBuilder, registry.RoleVerifier}
		},
		"no role":             func(_ *registry.VSA, c *registry.Claim) { c.Roles = nil },
		"other predicate":     func(_ *registry.VSA, c *registry.Claim) { c.Statement.PredicateType = registry.PredicateProvenance },
		"predicate is no VSA": func(_ *registry.VSA, c *registry.Claim) { c.Statement.Predicate = []byte(`"x"`) },
	}
	for name, edit := range wrong {
		bad := vsa(r, 9, edit)
		if found, _, ok := registry.FindVSA([]registry.Claim{bad}, r, prodURI); ok || found.Bundle != "" {
			t.Errorf("%s: a summary was found", name)
		}
		found, _, ok := registry.FindVSA([]registry.Claim{bad, good, bad}, r, prodURI)
		if !ok || found.Bundle != good.Bundle {
			t.Errorf("%s: the good summary beside it was not found", name)
		}
	}
	if _, _, ok := registry.FindVSA(nil, r, prodURI); ok {
		t.Error("a summary was found among none")
	}
	claims := []registry.Claim{vsa(r, 2, asIs), vsa(r, 5, asIs), good}
	for range claims {
		claims = append(claims[1:], claims[0])
		if found, summary, ok := registry.FindVSA(slices.Clone(claims), r, prodURI); !ok ||
			summary.TimeVerified.Hour() != 5 || found.Bundle != digest.FromString(time.Duration(5).String()) {
			t.Errorf("the summary of hour %d was found, want that of 5", summary.TimeVerified.Hour())
		}
	}
}
