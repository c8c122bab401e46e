package registry_test

import (
	"encoding/json"
	"testing"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry"
)

// What policy reads of provenance is the class of the metadata; of several the worst counts.
func TestPolicyReproducible(t *testing.T) {
	t.Parallel()
	engine := registry.Engine{Digest: digest.FromString("engine"), Variant: "fp32", Target: registry.Target{Name: "t"}}
	r := registry.Release{Digest: digest.FromString("release"), Engines: []registry.Engine{engine}}
	claim := func(class string, roles ...registry.Role) registry.Claim {
		predicate := `{"runDetails":{"metadata":{"startedOn":"2026-01-01T00:00:00Z"}}}`
		if class != "" {
			predicate = `{"runDetails":{"metadata":{"` + registry.ReproducibleField + `":"` + class + `"}}}`
		}
		return registry.Claim{
			Bundle: digest.FromString("bundle of " + class), Subject: engine.Digest, Signer: "key", Roles: roles, Key: registry.KeyTrusted,
			Statement: registry.Statement{
				PredicateType: registry.PredicateProvenance, Predicate: json.RawMessage(predicate),
				Subject: []registry.StatementSubject{{Digest: registry.NewDigestSet(engine.Digest)}},
			},
		}
	}
	for name, c := range map[string]struct {
		classes         []string
		role            registry.Role
		bytes, semantic bool
	}{
		"nobody tried":         {[]string{""}, registry.RoleBuilder, false, false},
		"bytes":                {[]string{"", "bytes"}, registry.RoleBuilder, true, true},
		"semantic":             {[]string{"semantic"}, registry.RoleBuilder, false, true},
		"none":                 {[]string{"none"}, registry.RoleBuilder, false, false},
		"bytes, then none":     {[]string{"bytes", "none"}, registry.RoleBuilder, false, false},
		"semantic, then bytes": {[]string{"semantic", "bytes"}, registry.RoleBuilder, false, true},
		"a word of its own":    {[]string{"perfect"}, registry.RoleBuilder, false, false},
		"said by a verifier":   {[]string{"bytes"}, registry.RoleVerifier, false, false},
	} {
		var claims []registry.Claim
		for _, class := range c.classes {
			claims = append(claims, claim(class, c.role))
		}
		for require, want := range map[string]bool{registry.RequireReproducibleBytes: c.bytes, registry.RequireReproducibleSemantic: c.semantic} {
			policy := registry.Policy{Require: []string{require}}
			if err := policy.Validate(); err != nil {
				t.Fatal(err)
			}
			if got := policy.Check(r, claims); got.Allowed() != want {
				t.Errorf("%s: %s allowed %t, want %t: %v", name, require, got.Allowed(), want, got.Requirements)
			}
		}
	}
}
