package airgap

import (
	"context"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/oci/layout"
	"mlpromote.dev/mlpromote/registry/restriction"
)

// RestrictionsFile is the name of the signed restriction list in a saved release.
const RestrictionsFile = "restrictions.json"

// restrictions returns those of the environment that a file is from: by the list in the file, by a newer one
// of the trust bundle, or by the one that the caller got elsewhere, which must not be older. A list that does not count is an
// error, because save writes no such list.
func (t Trusted) restrictions(ctx context.Context, in *layout.Layout, r artifact.Release, want Expectation) (restriction.Restrictions, error) {
	environment := "oci://" + want.Registry + "/" + want.Environment + "/"
	saved, err := titled(in, r, RestrictionsFile)
	if err != nil {
		return restriction.Restrictions{}, err
	}
	newest := restriction.NoRestrictions()
	var counter int64
	var known []byte
	if t.Known != nil {
		known = t.Known(environment)
	}
	for i, bundle := range [][]byte{saved, known, want.Restrictions} {
		if bundle == nil {
			continue
		}
		found, l, err := t.list(ctx, environment, bundle)
		switch {
		case err != nil:
			return restriction.Restrictions{}, err
		case l.Counter < counter && i == 1: // the list in the file is newer than its trust bundle
			continue
		case l.Counter < counter:
			return restriction.Restrictions{}, registry.Errorf(registry.CodeTrust,
				"restriction list %d of %s is older than list %d, which the file has: want a newer one", l.Counter, environment, counter)
		}
		newest, counter = found, l.Counter
	}
	return newest, nil
}

// list verifies a restriction list.
func (t Trusted) list(ctx context.Context, environment string, bundle []byte) (restriction.Restrictions, evidence.RestrictionList, error) {
	claim, err := t.Verify(ctx, bundle, environment)
	if err == nil && !claim.Statement.About(digest.FromString(environment)) {
		err = registry.Errorf(registry.CodeTrust, "it is not about %s", environment)
	}
	if err != nil {
		return restriction.Restrictions{}, evidence.RestrictionList{}, registry.Errorf(registry.CodeOf(err), "restriction list: %w", err)
	}
	// Without a history the time that the list claims is judged. A list of a revoked key lifts nothing:
	// since the list before it is not here, it is refused.
	claim.WithoutHistory = true
	l, err := claim.RestrictionList(environment)
	if err != nil {
		return restriction.Restrictions{}, evidence.RestrictionList{}, err
	}
	found, err := restriction.RestrictionsInForce(environment, claim)
	return found, l, err
}
