package restriction

import (
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
)

// SignedRestrictions is the restriction list of an environment with its proof. Without a list only
// Environment is set.
type SignedRestrictions struct {
	Environment string                   `json:"environment"`
	Digest      registry.Digest          `json:"digest,omitempty"` // of Bundle
	List        evidence.RestrictionList `json:"list,omitzero"`
	Signer      string                   `json:"signer,omitempty"`
	RecordedAt  time.Time                `json:"recordedAt,omitzero"`
	// InForce are the restrictions that apply. They are more than those of List if the key that
	// signed it was revoked since: then what it lifted still applies.
	InForce []evidence.Restriction `json:"inForce,omitempty"`
	Bundle  []byte                 `json:"bundle,omitempty"` // the sigstore bundle
}

// Restrictions returns those in force, as the registry says them. The zero SignedRestrictions, of no
// environment, gives the zero Restrictions.
func (s SignedRestrictions) Restrictions() Restrictions {
	return Restrictions{Known: s.Environment != "", List: s.InForce}
}

// Next returns the list that follows, with the restrictions in force, for a change by an approver.
// Errors: CodeConflict for a restriction that is in force already; CodeNotFound for one to lift
// that is not.
func (s SignedRestrictions) Next(resource, reason, by string, now time.Time, add, lift []evidence.Restriction) (evidence.RestrictionList, error) {
	next := evidence.RestrictionList{ResourceURI: resource, Counter: s.List.Counter + 1, Previous: s.Digest, IssuedOn: now.UTC(), Reason: reason}
	lifted := make(map[string]bool)
	for _, r := range lift {
		lifted[r.String()] = true
	}
	for _, r := range s.InForce {
		if lifted[r.String()] {
			delete(lifted, r.String())
			continue
		}
		next.Entries = append(next.Entries, r)
	}
	for _, missing := range registry.SortedKeys(lifted) {
		return evidence.RestrictionList{}, registry.Errorf(registry.CodeNotFound, "nothing to lift: no restriction of %s is in force in %s", missing, s.Environment)
	}
	for _, r := range add {
		for _, there := range next.Entries {
			if there.Same(r) {
				return evidence.RestrictionList{}, registry.Errorf(registry.CodeConflict,
					"%s is restricted in %s already, since %s: %s", r, s.Environment, registry.UTC(there.IssuedOn), there.Reason)
			}
		}
		r.Reason, r.By, r.IssuedOn = reason, by, next.IssuedOn
		next.Entries = append(next.Entries, r)
	}
	return next, next.Validate()
}

// Affects lists the restrictions in force that concern an engine, to show them. No decision rests on
// it: nothing here verifies the list.
func (s SignedRestrictions) Affects(r artifact.Release, e artifact.Engine, claims []evidence.Claim) []RestrictionMatch {
	return s.Restrictions().Match(r, e, claims)
}
