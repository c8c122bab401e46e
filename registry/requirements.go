package registry

// RequirementRole is the role whose evidence meets a requirement of an environment. ok is
// false for a requirement without evidence of its own.
func RequirementRole(requirement string) (role Role, ok bool) {
	switch requirement {
	case RequireSignature, RequireProvenance, RequireReproducibleBytes, RequireReproducibleSemantic:
		return RoleBuilder, true
	case RequireParity, RequireRecordedCases:
		return RoleVerifier, true
	}
	return "", false
}
