package api

import "mlpromote.dev/mlpromote/registry"

// attachPermission returns the permission that is needed to attach a bundle, by its predicate
// type. It does not verify the bundle: the registry refuses bundles that a key without the
// right role signed, and bundles that two readers could read differently. Errors: CodeTrust if
// there is no statement or its predicate type is unknown.
func attachPermission(bundle []byte) (registry.Permission, error) {
	var document struct {
		Envelope struct {
			Payload []byte `json:"payload"`
		} `json:"dsseEnvelope"`
	}
	if err := registry.DecodeSigned(bundle, &document); err != nil {
		return "", registry.Errorf(registry.CodeTrust, "attach: this is not the JSON of a sigstore bundle")
	}
	var statement struct {
		PredicateType string `json:"predicateType"`
	}
	if err := registry.DecodeSigned(document.Envelope.Payload, &statement); err != nil || statement.PredicateType == "" {
		return "", registry.Errorf(registry.CodeTrust,
			"attach: the bundle has no statement with a predicateType in a DSSE envelope")
	}
	role, known := registry.RoleFor(statement.PredicateType)
	if !known {
		return "", registry.Errorf(registry.CodeTrust, "attach: predicate type %.200q is unknown", statement.PredicateType)
	}
	return rolePermission(role), nil
}

// rolePermission returns the permission that is needed to attach evidence of a role.
func rolePermission(role registry.Role) registry.Permission {
	switch role {
	case registry.RoleBuilder:
		return registry.PermissionPush
	case registry.RoleVerifier:
		return registry.PermissionVerify
	case registry.RoleApprover:
		return registry.PermissionApprove
	case registry.RolePromoter:
		return registry.PermissionPromote
	}
	return registry.PermissionAdminister
}
