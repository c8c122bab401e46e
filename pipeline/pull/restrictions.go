package pull

import (
	"context"
	"strings"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry"
)

// environmentOf returns the URI of the environment of a record, whose resource is that of the model
// there.
func environmentOf(record Record, ref registry.Ref) string {
	return strings.TrimSuffix(record.Resource, ref.Model)
}

// restrictions returns what the newest of the restriction lists restricts in an environment: those of
// the folder, and given, which the caller has from elsewhere. Lists of other environments and of
// signers who are not trusted do not count. A folder cannot show that a list is missing. Errors:
// CodeTrust if given does not count, is older than a list in the folder, or a list cannot be read.
func (c Checker) restrictions(ctx context.Context, dir, environment string, lists [][]byte, given []byte) (registry.Restrictions, error) {
	newest := registry.NoRestrictions()
	var counter int64
	for _, bundle := range lists {
		in, l, err := c.restrictionList(ctx, environment, bundle)
		if err != nil {
			return registry.Restrictions{}, registry.Errorf(registry.CodeOf(err), "%s: %w", dir, err)
		}
		if l.Counter > counter {
			newest, counter = in, l.Counter
		}
	}
	if given == nil {
		return newest, nil
	}
	in, l, err := c.restrictionList(ctx, environment, given)
	switch {
	case err != nil:
		return registry.Restrictions{}, err
	case l.Counter == 0:
		return registry.Restrictions{}, registry.Errorf(registry.CodeTrust, "restriction list: it is not one of an approver that this machine trusts for %s", environment)
	case l.Counter < counter:
		return registry.Restrictions{}, registry.Errorf(registry.CodeTrust, "restriction list %d of %s is older than list %d, which %s has: want a newer one", l.Counter, environment, counter, dir)
	}
	return in, nil
}

// restrictionList reads one list. It returns the zero list for one that does not count.
func (c Checker) restrictionList(ctx context.Context, environment string, bundle []byte) (registry.Restrictions, registry.RestrictionList, error) {
	claim, err := c.Verify(ctx, bundle, environment)
	if registry.HasCode(err, registry.CodeTrust) || err == nil && !claim.Statement.About(digest.FromString(environment)) {
		return registry.Restrictions{}, registry.RestrictionList{}, nil
	}
	if err != nil {
		return registry.Restrictions{}, registry.RestrictionList{}, err
	}
	// Without a history nothing shows what a list of a revoked key lifted, nor could the lists before
	// it be missed. What it restricts counts in every state of its key.
	claim.Key = registry.KeyTrusted
	l, err := claim.RestrictionList(environment)
	if err != nil {
		return registry.Restrictions{}, registry.RestrictionList{}, err
	}
	in, err := registry.RestrictionsInForce(environment, claim)
	return in, l, err
}
