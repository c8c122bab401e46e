package access

import "mlpromote.dev/mlpromote/registry"

// attachPermission is what it takes to attach a bundle, by what it says. Nothing is
// verified here: the registry refuses a bundle that another than the role for its
// predicate type signed, and one that two readers could read differently. Errors:
// CodeTrust when it says nothing, or has a predicate type that is not known.
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
		return "", registry.Errorf(registry.CodeTrust, "attach: the bundle has no statement with a predicateType in a DSSE envelope")
	}
	role, known := registry.RoleFor(statement.PredicateType)
	if !known {
		return "", registry.Errorf(registry.CodeTrust, "attach: predicate type %.200q is not known here", statement.PredicateType)
	}
	return rolePermission(role), nil
}

// rolePermission is what it takes to bring in what a role signed.
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
