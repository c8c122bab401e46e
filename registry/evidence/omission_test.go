package evidence_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
)

// What a release was made without is what trusted builders say of the release itself, each engine once.
func TestLeftOut(t *testing.T) {
	t.Parallel()
	release := artifact.Release{Digest: registry.Digest("sha256:" + strings.Repeat("a", 64)),
		Engines: []artifact.Engine{{Digest: registry.Digest("sha256:" + strings.Repeat("e", 64)), Target: artifact.Target{Name: "a"}, Variant: "fp32"}}}
	const both = `[{"label": "a/fp32", "code": "internal"}, {"label": "a/int8", "code": "invalid"}, {"label": "a/int8", "code": "invalid"}]`
	claim := func(subject registry.Digest, predicateType, left string, role evidence.Role) evidence.Claim {
		predicate := json.RawMessage(`{"buildDefinition": {"internalParameters": {"leftOut": ` + left + `}}}`)
		return evidence.Claim{Subject: subject, Roles: []evidence.Role{role}, Key: evidence.KeyTrusted, Statement: evidence.Statement{
			PredicateType: predicateType, Predicate: predicate, Subject: []evidence.StatementSubject{{Digest: evidence.NewDigestSet(subject)}}}}
	}
	want := []evidence.LeftOut{{Label: "a/int8", Code: registry.CodeInvalid}}
	for name, c := range map[string]struct {
		claims []evidence.Claim
		want   []evidence.LeftOut
	}{
		"of the release": {[]evidence.Claim{claim(release.Digest, evidence.PredicateProvenance, both, evidence.RoleBuilder)}, want},
		"said twice": {[]evidence.Claim{claim(release.Digest, evidence.PredicateProvenance, both,
			evidence.RoleBuilder), claim(release.Digest, evidence.PredicateProvenance, both, evidence.RoleBuilder)}, want},
		"of an engine":         {[]evidence.Claim{claim(release.Engines[0].Digest, evidence.PredicateProvenance, both, evidence.RoleBuilder)}, nil},
		"by a verifier":        {[]evidence.Claim{claim(release.Digest, evidence.PredicateProvenance, both, evidence.RoleVerifier)}, nil},
		"in another statement": {[]evidence.Claim{claim(release.Digest, evidence.PredicateSign, both, evidence.RoleBuilder)}, nil},
		"not a list":           {[]evidence.Claim{claim(release.Digest, evidence.PredicateProvenance, `"all"`, evidence.RoleBuilder)}, nil},
		"no claims":            {nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := evidence.LeftOutOf(release, c.claims); !slices.Equal(got, c.want) {
				t.Errorf("made without %v, want %v", got, c.want)
			}
		})
	}
}
