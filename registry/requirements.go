package registry

// RequirementRole returns the role whose evidence meets a requirement of an environment. ok is
// false for a requirement that needs no evidence of its own.
func RequirementRole(requirement string) (role Role, ok bool) {
	switch requirement {
	case RequireSignature, RequireProvenance, RequireReproducibleBytes, RequireReproducibleSemantic:
		return RoleBuilder, true
	case RequireParity, RequireRecordedCases:
		return RoleVerifier, true
	case requireApprovals:
		return RoleApprover, true
	}
	return "", false
}
