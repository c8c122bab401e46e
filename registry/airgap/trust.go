package airgap

import (
	"context"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/oci/layout"
	"mlpromote.dev/mlpromote/registry/storage"
)

// TrustBundleFile is the name of the newest trust bundle of the sending side in a saved release.
const TrustBundleFile = "trust-bundle.json"

// Trusted has the rules for judging a file.
type Trusted struct {
	Verify storage.VerifyEvidence // by the keys that the receiving side trusts for the sending one
	// Known returns the signed restriction list that the receiving side knows of the environment with a URI; nil:
	// none. A newer one in the file is taken in its place.
	Known func(environment string) []byte
}

// trusted asks for the trust of the receiving side, which may follow the trust bundle in the file.
func (c Checker) trusted(ctx context.Context, in *layout.Layout, r artifact.Release) (Trusted, error) {
	bundle, err := titled(in, r, TrustBundleFile)
	if err != nil {
		return Trusted{}, err
	}
	by, err := c.Trust(ctx, bundle)
	if err == nil && by.Verify == nil {
		err = registry.Errorf(registry.CodeInvalid, "load: want keys to verify with")
	}
	return by, err
}
