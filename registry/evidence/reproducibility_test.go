package evidence_test

import (
	"encoding/json"
	"testing"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/policy"
)

// What policy reads of provenance is the class of the metadata; of several the worst counts.
func TestPolicyReproducible(t *testing.T) {
	t.Parallel()
	engine := artifact.Engine{Digest: digest.FromString("engine"), Variant: "fp32", Target: artifact.Target{Name: "t"}}
	r := artifact.Release{Digest: digest.FromString("release"), Engines: []artifact.Engine{engine}}
	claim := func(class string, roles ...evidence.Role) evidence.Claim {
		predicate := `{"runDetails":{"metadata":{"startedOn":"2026-01-01T00:00:00Z"}}}`
		if class != "" {
			predicate = `{"runDetails":{"metadata":{"` + evidence.ReproducibleField + `":"` + class + `"}}}`
		}
		return evidence.Claim{
			Bundle: digest.FromString("bundle of " + class), Subject: engine.Digest, Signer: "key", Roles: roles, Key: evidence.KeyTrusted,
			Statement: evidence.Statement{
				PredicateType: evidence.PredicateProvenance, Predicate: json.RawMessage(predicate),
				Subject: []evidence.StatementSubject{{Digest: evidence.NewDigestSet(engine.Digest)}},
			},
		}
	}
	for name, c := range map[string]struct {
		classes         []string
		role            evidence.Role
		bytes, semantic bool
	}{
		"nobody tried":         {[]string{""}, evidence.RoleBuilder, false, false},
		"bytes":                {[]string{"", "bytes"}, evidence.RoleBuilder, true, true},
		"semantic":             {[]string{"semantic"}, evidence.RoleBuilder, false, true},
		"none":                 {[]string{"none"}, evidence.RoleBuilder, false, false},
		"bytes, then none":     {[]string{"bytes", "none"}, evidence.RoleBuilder, false, false},
		"semantic, then bytes": {[]string{"semantic", "bytes"}, evidence.RoleBuilder, false, true},
		"a word of its own":    {[]string{"perfect"}, evidence.RoleBuilder, false, false},
		"said by a verifier":   {[]string{"bytes"}, evidence.RoleVerifier, false, false},
	} {
		var claims []evidence.Claim
		for _, class := range c.classes {
			claims = append(claims, claim(class, c.role))
		}
		for require, want := range map[string]bool{policy.RequireReproducibleBytes: c.bytes, policy.RequireReproducibleSemantic: c.semantic} {
			policy := policy.Policy{Require: []string{require}}
			if err := policy.Validate(); err != nil {
				t.Fatal(err)
			}
			if got := policy.Check(r, claims); got.Allowed() != want {
				t.Errorf("%s: %s allowed %t, want %t: %v", name, require, got.Allowed(), want, got.Requirements)
			}
		}
	}
}
