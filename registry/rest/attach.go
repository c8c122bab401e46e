package rest

import (
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/storage"
)

// attachPermission returns the permission that is needed to attach a bundle, by its predicate
// type. It does not verify the bundle: the registry refuses bundles that a key without the
// right role signed, and bundles that two readers could read differently. Errors: CodeTrust if
// there is no statement or its predicate type is unknown.
func attachPermission(bundle []byte) (storage.Permission, error) {
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
	role, known := evidence.RoleFor(statement.PredicateType)
	if !known {
		return "", registry.Errorf(registry.CodeTrust, "attach: predicate type %.200q is unknown", statement.PredicateType)
	}
	return rolePermission(role), nil
}

// rolePermission returns the permission that is needed to attach evidence of a role.
func rolePermission(role evidence.Role) storage.Permission {
	switch role {
	case evidence.RoleBuilder:
		return storage.PermissionPush
	case evidence.RoleVerifier:
		return storage.PermissionVerify
	case evidence.RoleApprover:
		return storage.PermissionApprove
	case evidence.RolePromoter:
		return storage.PermissionPromote
	}
	return storage.PermissionAdminister
}
