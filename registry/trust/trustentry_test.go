package trust_test

import (
	"slices"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/policy"
	"mlpromote.dev/mlpromote/registry/trust"
)

func TestTrustEntryCovers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		prefix, resource string
		covers, reaches  bool
	}{
		{"oci://local/", "oci://local/prod/vision/digits", true, true},
		{"oci://local", "oci://local/prod", true, true},
		{"oci://local/prod", "oci://local/prod/vision/digits", true, true},
		{"oci://local/prod/", "oci://local/prod", false, true},
		{"oci://local/prod", "oci://local/prod", true, true},
		{"oci://local/pro", "oci://local/prod/vision/digits", false, false},
		{"oci://local/prod/vision/", "oci://local/prod", false, true},
		{"oci://local/production/", "oci://local/prod", false, false},
		{"oci://other/", "oci://local/prod", false, false},
		{"", "oci://local/prod", false, false},
	} {
		e := trust.TrustEntry{Resources: []string{"oci://elsewhere/", c.prefix}}
		if got := e.Covers(c.resource); got != c.covers {
			t.Errorf("%q covers %q: got %t, want %t", c.prefix, c.resource, got, c.covers)
		}
		if got := e.Reaches(c.resource); got != c.reaches {
			t.Errorf("%q reaches %q: got %t, want %t", c.prefix, c.resource, got, c.reaches)
		}
	}
}

// Roles that cannot be checked yet are not granted.
func TestTrustEntryGrants(t *testing.T) {
	t.Parallel()
	both := []evidence.Role{evidence.RoleVerifier, evidence.RoleApprover}
	for _, c := range []struct {
		name  string
		entry trust.TrustEntry
		want  []evidence.Role
	}{
		{"a key", trust.TrustEntry{Key: "k", Roles: both}, both},
		{"a revoked key", trust.TrustEntry{Key: "k", Roles: both, State: evidence.KeyRevoked}, both},
		{"an identity", trust.TrustEntry{Identity: &trust.Identity{Issuer: "https://example.com"}, Roles: both}, both},
		{"node types", trust.TrustEntry{Key: "k", Roles: both, NodeTypes: []string{"g6.xlarge"}}, []evidence.Role{evidence.RoleApprover}},
	} {
		if got := c.entry.Grants(); !slices.Equal(got, c.want) {
			t.Errorf("%s: grants %v, want %v", c.name, got, c.want)
		}
		if got := c.entry.GrantsAgainst(); !slices.Equal(got, both) {
			t.Errorf("%s: grants %v against a release, want %v", c.name, got, both)
		}
	}
}

func TestEffectiveState(t *testing.T) {
	t.Parallel()
	cases := map[evidence.KeyState]evidence.KeyState{
		"": evidence.KeyTrusted, evidence.KeyTrusted: evidence.KeyTrusted, evidence.KeyRetired: evidence.KeyRetired,
		evidence.KeyRevoked: evidence.KeyRevoked, "suspended": "suspended",
	}
	for state, want := range cases {
		if got := (trust.TrustEntry{State: state}).EffectiveState(); got != want {
			t.Errorf("state %q: got %q, want %q", state, got, want)
		}
	}
}

// A key is refused before it signs only if nothing that is trusted could be it.
func TestCheckSigner(t *testing.T) {
	t.Parallel()
	entry := func(key string, state evidence.KeyState, role evidence.Role, resource string) trust.TrustEntry {
		return trust.TrustEntry{Key: key, State: state, Roles: []evidence.Role{role}, Resources: []string{resource}}
	}
	const resource = "oci://local/staging/vision/digits"
	ids := map[string]string{"a.pub": "a", "b.pub": "b"}
	for name, c := range map[string]struct {
		trust   []trust.TrustEntry
		signer  string
		refused bool
	}{
		"its key":             {[]trust.TrustEntry{entry("a.pub", "", evidence.RoleBuilder, "oci://local/")}, "a", false},
		"another key":         {[]trust.TrustEntry{entry("b.pub", "", evidence.RoleBuilder, "oci://local/")}, "a", true},
		"another role":        {[]trust.TrustEntry{entry("a.pub", "", evidence.RoleVerifier, "oci://local/")}, "a", true},
		"another environment": {[]trust.TrustEntry{entry("a.pub", "", evidence.RoleBuilder, "oci://local/prod/")}, "a", true},
		"a retired key":       {[]trust.TrustEntry{entry("a.pub", evidence.KeyRetired, evidence.RoleBuilder, "oci://local/")}, "a", true},
		"a key without a file": {[]trust.TrustEntry{entry("b.pub", "", evidence.RoleBuilder, "oci://local/"),
			entry("missing.pub", "", evidence.RoleBuilder, "oci://local/")}, "a", true},
		"an identity among the trusted": {[]trust.TrustEntry{{Identity: &trust.Identity{Issuer: "https://ci.example"},
			Roles: []evidence.Role{evidence.RoleBuilder}, Resources: []string{"oci://local/"}}}, "", false},
		"an identity, and keys are trusted": {[]trust.TrustEntry{entry("a.pub", "", evidence.RoleBuilder, "oci://local/")}, "", true},
		"no entry":                          {nil, "a", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := policy.Environments{Registry: "local", Trust: c.trust, KeyIDs: ids}.CheckSigner(evidence.RoleBuilder, resource, c.signer)
			if unread := (policy.Environments{Registry: "local", Trust: c.trust}).CheckSigner(evidence.RoleBuilder, resource, c.signer); name == "another key" && unread != nil {
				t.Errorf("got %v, want no refusal by keys that were not read", unread)
			}
			if (err != nil) != c.refused || err != nil && (!registry.HasCode(err, registry.CodeTrust) || !strings.Contains(err.Error(), "is not trusted as builder for "+resource)) {
				t.Errorf("got %v, want refused: %t", err, c.refused)
			}
		})
	}
}
