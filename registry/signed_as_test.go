package registry_test

import (
	"testing"

	"mlpromote.dev/mlpromote/registry"
)

func TestSignedAs(t *testing.T) {
	t.Parallel()
	both := []registry.Role{registry.RoleBuilder, registry.RolePromoter}
	cases := map[string]struct {
		roles       []registry.Role
		state       registry.KeyState
		role        registry.Role
		signed, now bool
	}{
		"trusted":           {both, registry.KeyTrusted, registry.RolePromoter, true, true},
		"another role":      {both, registry.KeyTrusted, registry.RoleVerifier, false, false},
		"no roles":          {nil, registry.KeyTrusted, registry.RoleBuilder, false, false},
		"retired":           {both, registry.KeyRetired, registry.RoleBuilder, true, false},
		"revoked":           {both, registry.KeyRevoked, registry.RoleBuilder, true, false},
		"no state":          {both, "", registry.RoleBuilder, true, false},
		"an unknown state":  {both, "suspended", registry.RoleBuilder, true, false},
		"the empty role":    {both, registry.KeyTrusted, "", false, false},
		"an empty role too": {[]registry.Role{""}, registry.KeyTrusted, "", false, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			claim := registry.Claim{Roles: c.roles, Key: c.state}
			if got := claim.SignedAs(c.role); got != c.signed {
				t.Errorf("SignedAs(%q) is %t, want %t", c.role, got, c.signed)
			}
			if got := claim.SignedNowAs(c.role); got != c.now {
				t.Errorf("SignedNowAs(%q) is %t, want %t", c.role, got, c.now)
			}
		})
	}
}
