package registry_test

import (
	"slices"
	"strings"
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

// A key is refused before it signs only if nothing that is trusted could be it.
func TestCheckSigner(t *testing.T) {
	t.Parallel()
	entry := func(key string, state registry.KeyState, role registry.Role, resource string) registry.TrustEntry {
		return registry.TrustEntry{Key: key, State: state, Roles: []registry.Role{role}, Resources: []string{resource}}
	}
	const resource = "oci://local/staging/vision/digits"
	ids := map[string]string{"a.pub": "a", "b.pub": "b"}
	for name, c := range map[string]struct {
		trust   []registry.TrustEntry
		signer  string
		refused bool
	}{
		"its key":             {[]registry.TrustEntry{entry("a.pub", "", registry.RoleBuilder, "oci://local/")}, "a", false},
		"another key":         {[]registry.TrustEntry{entry("b.pub", "", registry.RoleBuilder, "oci://local/")}, "a", true},
		"another role":        {[]registry.TrustEntry{entry("a.pub", "", registry.RoleVerifier, "oci://local/")}, "a", true},
		"another environment": {[]registry.TrustEntry{entry("a.pub", "", registry.RoleBuilder, "oci://local/prod/")}, "a", true},
		"a retired key":       {[]registry.TrustEntry{entry("a.pub", registry.KeyRetired, registry.RoleBuilder, "oci://local/")}, "a", true},
		"a key without a file": {[]registry.TrustEntry{entry("b.pub", "", registry.RoleBuilder, "oci://local/"),
			entry("missing.pub", "", registry.RoleBuilder, "oci://local/")}, "a", true},
		"an identity among the trusted": {[]registry.TrustEntry{{Identity: &registry.Identity{Issuer: "https://ci.example"},
			Roles: []registry.Role{registry.RoleBuilder}, Resources: []string{"oci://local/"}}}, "", false},
		"an identity, and keys are trusted": {[]registry.TrustEntry{entry("a.pub", "", registry.RoleBuilder, "oci://local/")}, "", true},
		"no entry":                          {nil, "a", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := registry.Environments{Registry: "local", Trust: c.trust, KeyIDs: ids}.CheckSigner(registry.RoleBuilder, resource, c.signer)
			if unread := (registry.Environments{Registry: "local", Trust: c.trust}).CheckSigner(registry.RoleBuilder, resource, c.signer); name == "another key" && unread != nil {
				t.Errorf("got %v, want no refusal by keys that were not read", unread)
			}
			if (err != nil) != c.refused || err != nil && (!registry.HasCode(err, registry.CodeTrust) || !strings.Contains(err.Error(), "is not trusted as builder for "+resource)) {
				t.Errorf("got %v, want refused: %t", err, c.refused)
			}
		})
	}
}
