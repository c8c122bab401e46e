package evidence_test

import (
	"testing"

	"mlpromote.dev/mlpromote/registry/evidence"
)

func TestSignedAs(t *testing.T) {
	t.Parallel()
	both := []evidence.Role{evidence.RoleBuilder, evidence.RolePromoter}
	cases := map[string]struct {
		roles       []evidence.Role
		state       evidence.KeyState
		role        evidence.Role
		signed, now bool
	}{
		"trusted":           {both, evidence.KeyTrusted, evidence.RolePromoter, true, true},
		"another role":      {both, evidence.KeyTrusted, evidence.RoleVerifier, false, false},
		"no roles":          {nil, evidence.KeyTrusted, evidence.RoleBuilder, false, false},
		"retired":           {both, evidence.KeyRetired, evidence.RoleBuilder, true, false},
		"revoked":           {both, evidence.KeyRevoked, evidence.RoleBuilder, true, false},
		"no state":          {both, "", evidence.RoleBuilder, true, false},
		"an unknown state":  {both, "suspended", evidence.RoleBuilder, true, false},
		"the empty role":    {both, evidence.KeyTrusted, "", false, false},
		"an empty role too": {[]evidence.Role{""}, evidence.KeyTrusted, "", false, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			claim := evidence.Claim{Roles: c.roles, Key: c.state}
			if got := claim.SignedAs(c.role); got != c.signed {
				t.Errorf("SignedAs(%q) is %t, want %t", c.role, got, c.signed)
			}
			if got := claim.SignedNowAs(c.role); got != c.now {
				t.Errorf("SignedNowAs(%q) is %t, want %t", c.role, got, c.now)
			}
		})
	}
}
