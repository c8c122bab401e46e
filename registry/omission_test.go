package registry_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/registry"
)

// What a release was made without is what trusted builders say of the release itself, each engine once.
func TestLeftOut(t *testing.T) {
	t.Parallel()
	release := registry.Release{Digest: registry.Digest("sha256:" + strings.Repeat("a", 64)),
		Engines: []registry.Engine{{Digest: registry.Digest("sha256:" + strings.Repeat("e", 64)), Target: registry.Target{Name: "a"}, Variant: "fp32"}}}
	const both = `[{"label": "a/fp32", "code": "internal"}, {"label": "a/int8", "code": "invalid"}, {"label": "a/int8", "code": "invalid"}]`
	claim := func(subject registry.Digest, predicateType, left string, role registry.Role) registry.Claim {
		predicate := json.RawMessage(`{"buildDefinition": {"internalParameters": {"leftOut": ` + left + `}}}`)
		return registry.Claim{Subject: subject, Roles: []registry.Role{role}, Key: registry.KeyTrusted, Statement: registry.Statement{
			PredicateType: predicateType, Predicate: predicate, Subject: []registry.StatementSubject{{Digest: registry.NewDigestSet(subject)}}}}
	}
	want := []registry.LeftOut{{Label: "a/int8", Code: registry.CodeInvalid}}
	for name, c := range map[string]struct {
		claims []registry.Claim
		want   []registry.LeftOut
	}{
		"of the release": {[]registry.Claim{claim(release.Digest, registry.PredicateProvenance, both, registry.RoleBuilder)}, want},
		"said twice": {[]registry.Claim{claim(release.Digest, registry.PredicateProvenance, both,
			registry.RoleBuilder), claim(release.Digest, registry.PredicateProvenance, both, registry.RoleBuilder)}, want},
		"of an engine":         {[]registry.Claim{claim(release.Engines[0].Digest, registry.PredicateProvenance, both, registry.RoleBuilder)}, nil},
		"by a verifier":        {[]registry.Claim{claim(release.Digest, registry.PredicateProvenance, both, registry.RoleVerifier)}, nil},
		"in another statement": {[]registry.Claim{claim(release.Digest, registry.PredicateSign, both, registry.RoleBuilder)}, nil},
		"not a list":           {[]registry.Claim{claim(release.Digest, registry.PredicateProvenance, `"all"`, registry.RoleBuilder)}, nil},
		"no claims":            {nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := release.LeftOut(c.claims); !slices.Equal(got, c.want) {
				t.Errorf("made without %v, want %v", got, c.want)
			}
		})
	}
}
