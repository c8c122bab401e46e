package registry_test

import (
	"testing"

	"mlpromote.dev/mlpromote/registry"
)

// Who has to act follows from the role whose evidence is missing. What speaks against a release awaits nobody.
func TestRolesOfRequirements(t *testing.T) {
	t.Parallel()
	const builder, verifier, approver = registry.RoleBuilder, registry.RoleVerifier, registry.RoleApprover
	for name, c := range map[string]struct {
		of      registry.Role // empty: it needs no evidence
		awaited registry.Role // while it is unmet and has no evidence
		more    registry.Role // the same with evidence that does not meet it
	}{
		registry.RequireSignature:            {builder, builder, builder},
		registry.RequireProvenance:           {builder, builder, builder},
		registry.RequireReproducibleBytes:    {builder, builder, ""},
		registry.RequireReproducibleSemantic: {builder, builder, ""},
		"ci-job":                             {builder, builder, ""},
		registry.RequireParity:               {verifier, verifier, verifier},
		registry.RequireRecordedCases:        {verifier, verifier, verifier},
		"coverage":                           {"", verifier, verifier},
		"reports":                            {"", verifier, verifier},
		"approvals":                          {approver, approver, approver},
		"no-quarantine":                      {"", "", ""},
		"unknown":                            {"", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if role, ok := registry.RequirementRole(name); role != c.of || ok != (c.of != "") {
				t.Errorf("needs evidence of %q, %t; want %q", role, ok, c.of)
			}
			for _, req := range []registry.Requirement{{Name: name}, {Name: name, Evidence: []registry.Digest{"sha256:a"}}} {
				want := c.awaited
				if len(req.Evidence) > 0 {
					want = c.more
				}
				// Whether it awaits somebody matters; the role is that of the evidence.
				if role, ok := req.AwaitedRole(); ok != (want != "") || ok && role != want {
					t.Errorf("with the evidence %q it awaits %q, %t; want %q", req.Evidence, role, ok, want)
				}
				req.Refused = true
				if role, ok := req.AwaitedRole(); ok {
					t.Errorf("refused, it awaits %q", role)
				}
			}
		})
	}
}

// A failing report and a quarantine reach every environment that has the engine; an approval stays where it was given.
func TestWhatSpreads(t *testing.T) {
	t.Parallel()
	for predicate, want := range map[string]bool{
		registry.PredicateParity: true, registry.PredicatePerformance: true, registry.PredicateQuarantine: true,
		registry.PredicateApproval: false, registry.PredicateProvenance: false, registry.PredicateVSA: false,
		registry.PredicateBreakGlass: false, registry.PredicateTestResult: false, registry.PredicateSign: false,
	} {
		if got := registry.Spreads(predicate); got != want {
			t.Errorf("%s spreads: %t, want %t", predicate, got, want)
		}
	}
}
