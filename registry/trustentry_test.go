package registry_test

import (
	"slices"
	"testing"

	"mlpromote.dev/mlpromote/registry"
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
		e := registry.TrustEntry{Resources: []string{"oci://elsewhere/", c.prefix}}
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
	both := []registry.Role{registry.RoleVerifier, registry.RoleApprover}
	for _, c := range []struct {
		name  string
		entry registry.TrustEntry
		want  []registry.Role
	}{
		{"a key", registry.TrustEntry{Key: "k", Roles: both}, both},
		{"a revoked key", registry.TrustEntry{Key: "k", Roles: both, State: registry.KeyRevoked}, both},
		{"an identity", registry.TrustEntry{Identity: &registry.Identity{Issuer: "https://example.com"}, Roles: both}, both},
		{"node types", registry.TrustEntry{Key: "k", Roles: both, NodeTypes: []string{"g6.xlarge"}}, []registry.Role{registry.RoleApprover}},
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
	cases := map[registry.KeyState]registry.KeyState{
		"": registry.KeyTrusted, registry.KeyTrusted: registry.KeyTrusted, registry.KeyRetired: registry.KeyRetired,
		registry.KeyRevoked: registry.KeyRevoked, "suspended": "suspended",
	}
	for state, want := range cases {
		if got := (registry.TrustEntry{State: state}).EffectiveState(); got != want {
			t.Errorf("state %q: got %q, want %q", state, got, want)
		}
	}
}
