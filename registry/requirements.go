package registry

// RequirementRole returns the role whose evidence meets a requirement of an environment. ok is
// false for a requirement that needs no evidence of its own.
func RequirementRole(requirement string) (role Role, ok bool) {
	switch requirement {
	case RequireSignature, RequireProvenance, requireCIJob, RequireReproducibleBytes, RequireReproducibleSemantic:
		return RoleBuilder, true
	case RequireParity, RequireRecordedCases:
		return RoleVerifier, true
	case requireApprovals:
		return RoleApprover, true
	}
	return "", false
}

// AwaitedRole returns the role whose further evidence can meet an unmet requirement. ok is false for one that no further
// evidence meets, such as a requirement on what a release is made of.
func (req Requirement) AwaitedRole() (role Role, ok bool) {
	if req.Objects() {
		return "", false
	}
	switch req.Name {
	case requireCoverage, requireReports:
		return RoleVerifier, true
	case RequireReproducibleBytes, RequireReproducibleSemantic, requireCIJob: // the provenance that is there says that it is not
		return RoleBuilder, len(req.Evidence) == 0
	}
	return RequirementRole(req.Name)
}
