package pull

import (
	"context"
	"strings"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/restriction"
)

// environmentOf returns the URI of the environment of a record, whose resource is that of the model
// there.
func environmentOf(record Record, ref registry.Ref) string {
	return strings.TrimSuffix(record.Resource, ref.Model)
}

// restrictions returns what the newest of the restriction lists restricts in an environment: those of
// the folder, and those that the caller has from elsewhere. Lists of other environments and of
// signers who are not trusted do not count. A folder cannot show that a list is missing. Errors:
// CodeTrust if a list of the caller does not count, the given one is older than another, or a list cannot be read.
func (c Checker) restrictions(ctx context.Context, dir, environment string, lists [][]byte, want Expectation) (restriction.Restrictions, error) {
	newest := restriction.NoRestrictions()
	var counter int64
	for _, bundle := range lists {
		in, l, err := c.restrictionList(ctx, environment, bundle, false)
		if err != nil {
			return restriction.Restrictions{}, registry.Errorf(registry.CodeOf(err), "%s: %w", dir, err)
		}
		if l.Counter > counter {
			newest, counter = in, l.Counter
		}
	}
	if want.Known != nil {
		if known := want.Known(environment); len(known) > 0 {
			in, l, err := c.mustCount(ctx, environment, known)
			if err != nil {
				return restriction.Restrictions{}, err
			}
			if l.Counter >= counter {
				newest, counter = in, l.Counter
			}
		}
	}
	if want.Restrictions == nil {
		return newest, nil
	}
	in, l, err := c.mustCount(ctx, environment, want.Restrictions)
	switch {
	case err != nil:
		return restriction.Restrictions{}, err
	case l.Counter < counter:
		return restriction.Restrictions{}, registry.Errorf(registry.CodeTrust,
			"restriction list %d of %s is older than list %d, which %s or the accepted trust bundle has: want a newer one",
			l.Counter, environment, counter, dir)
	}
	return in, nil
}

// mustCount reads a list of the caller, which must be one of a trusted approver.
func (c Checker) mustCount(ctx context.Context, environment string, bundle []byte) (restriction.Restrictions, evidence.RestrictionList, error) {
	in, l, err := c.restrictionList(ctx, environment, bundle, true)
	if err == nil && l.Counter == 0 {
		err = registry.Errorf(registry.CodeTrust, "restriction list: this machine trusts no signer of it as approver for %s", environment)
	}
	return in, l, err
}

// restrictionList reads one list. It returns the zero list for one that does not count. If its key
// must count now, a list of a revoked key that may have lifted something is refused.
func (c Checker) restrictionList(ctx context.Context, environment string, bundle []byte,
	mustCount bool) (restriction.Restrictions, evidence.RestrictionList, error) {
	claim, err := c.Verify(ctx, bundle, environment)
	if registry.HasCode(err, registry.CodeTrust) || err == nil && !claim.Statement.About(digest.FromString(environment)) {
		return restriction.Restrictions{}, evidence.RestrictionList{}, nil
	}
	if err != nil {
		return restriction.Restrictions{}, evidence.RestrictionList{}, err
	}
	claim.Bundle, claim.RecordedAt, claim.WithoutHistory = digest.FromBytes(bundle), c.now(), true
	if !mustCount {
		// What a list restricts counts in every state of its key, and what it lifted is unknown: whoever
		// can change the folder can also remove the list.
		claim.Key, claim.Window = evidence.KeyTrusted, evidence.Window{}
	}
	l, err := claim.RestrictionList(environment)
	if err != nil {
		return restriction.Restrictions{}, evidence.RestrictionList{}, err
	}
	in, err := restriction.RestrictionsInForce(environment, claim)
	return in, l, err
}
