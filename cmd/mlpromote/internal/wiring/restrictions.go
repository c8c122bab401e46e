package wiring

import (
	"context"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/atomicfile"
	"mlpromote.dev/mlpromote/registry/restriction"
)

// ExportRestrictions writes the signed restriction list in force in an environment to a file. Errors:
// CodeNotFound if there is none; those of Restrictions.
func (i *Instance) ExportRestrictions(ctx context.Context, environment, file string) (restriction.SignedRestrictions, error) {
	signed, err := i.Restrictions(ctx, environment)
	if err != nil {
		return signed, err
	}
	if signed.Digest == "" {
		return signed, registry.Errorf(registry.CodeNotFound, "%s has no restriction list", environment)
	}
	return signed, atomicfile.Write(file, signed.Bundle, 0o644)
}
