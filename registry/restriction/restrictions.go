package restriction

import (
	"slices"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
)

// Restrictions are those in force in an environment. The zero Restrictions is unknown, and refuses
// every release.
type Restrictions struct {
	Known bool
	List  []evidence.Restriction
}

// NoRestrictions are those of an environment whose history names no restriction list.
func NoRestrictions() Restrictions { return Restrictions{Known: true} }

// Entries lists the restrictions.
func (rs Restrictions) Entries() []evidence.Restriction { return slices.Clone(rs.List) }

// Exist reports whether a check can have an objection: there is a restriction, or it is unknown
// whether there is one.
func (rs Restrictions) Exist() bool { return !rs.Known || len(rs.List) > 0 }

// RestrictionsInForce returns the restrictions of the environment with the URI resource. lists are
// verified claims: the list in force, followed by the list before it while [evidence.Claim.OnlyRestricts] is
// true of the last one. A list whose signer's key was revoked adds restrictions but lifts none:
// otherwise a stolen key could lift them for good. Errors: CodeTrust for a list that does not
// count, and if a list is missing.
func RestrictionsInForce(resource string, lists ...evidence.Claim) (Restrictions, error) {
	in := NoRestrictions()
	var expected registry.Digest
	for i, c := range lists {
		l, err := c.RestrictionList(resource)
		if err != nil {
			return Restrictions{}, err
		}
		if i > 0 && c.Bundle != expected {
			return Restrictions{}, registry.Errorf(registry.CodeTrust, "restriction list %d is not the one that the next list names", l.Counter)
		}
		for _, r := range l.Entries {
			if !slices.ContainsFunc(in.List, r.Same) {
				in.List = append(in.List, r)
			}
		}
		if expected = l.Previous; !c.OnlyRestricts() || expected == "" {
			return in, nil
		}
	}
	return Restrictions{}, registry.WithHint(
		registry.Errorf(registry.CodeTrust,
			"restriction list of %s: the key that signed it is revoked or was retired before, and the list before it is missing, so what it lifted is unknown", resource),
		"have an approver with a trusted key sign a new list: mlpromote quarantine renew")
}

// CheckNext checks that a list can follow the one in force: current, whose bundle has the digest
// before, with the restrictions in. For the first list current is the zero list and before is
// empty. signer is the key of the new list. The next list has the next counter and names the list
// before it. It repeats restrictions unchanged, or leaves them out; new ones are by its signer, of
// its time. Errors: CodeConflict for another counter or another list before it; CodeTrust for a
// changed restriction.
func CheckNext(l evidence.RestrictionList, current evidence.RestrictionList, before registry.Digest, in Restrictions, signer string) error {
	if l.Counter != current.Counter+1 || l.Previous != before {
		return registry.WithHint(registry.Errorf(registry.CodeConflict, "restriction list %d of %s, after %q: the list in force is %d, %q", l.Counter, l.ResourceURI,
			l.Previous, current.Counter, before), "read the list in force, and sign the next one")
	}
	for _, r := range l.Entries {
		i := slices.IndexFunc(in.List, r.Same)
		switch {
		case i >= 0 && !r.Equal(in.List[i]):
			return registry.Errorf(registry.CodeTrust, "restriction list %d: %s is in force with another reason, time or approver: a list repeats it unchanged", l.Counter, r)
		case i < 0 && (r.By != signer || !r.IssuedOn.Equal(l.IssuedOn)):
			return registry.Errorf(registry.CodeTrust, "restriction list %d: %s is new, by %s on %s: want the key and the time of this list, %s and %s",
				l.Counter, r, r.By, registry.UTC(r.IssuedOn), signer, registry.UTC(l.IssuedOn))
		}
	}
	return nil
}
