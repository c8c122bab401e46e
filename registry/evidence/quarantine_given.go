package evidence

import (
	"slices"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
)

// Quarantines lists the quarantines of a subject that are not lifted. claims are about the
// release that the subject is or belongs to.
func Quarantines(r artifact.Release, claims []Claim, subject registry.Digest) []Claim {
	counted, _ := Count(r, claims)
	return counted.Quarantines(subject)
}

// Quarantines lists the quarantines of a subject that are not lifted.
func (cs Counted) Quarantines(subject registry.Digest) []Claim {
	var quarantines, lifted []Claim
	lifts := cs.lifts()
	for _, c := range cs.Of(PredicateQuarantine, subject) {
		q, _ := c.Quarantine()
		switch {
		case len(q.Lifts) > 0:
		case slices.Contains(lifts, c.Bundle):
			lifted = append(lifted, c)
		default:
			quarantines = append(quarantines, c)
		}
	}
	// The same signed statement in another bundle is the same quarantine. Statements without a
	// time are an exception: two equal ones could be two quarantines.
	return slices.DeleteFunc(quarantines, func(c Claim) bool {
		q, _ := c.Quarantine()
		return !q.IssuedOn.IsZero() && slices.ContainsFunc(lifted, c.Restates)
	})
}

// lifts lists the bundles that are lifted.
func (cs Counted) lifts() []registry.Digest {
	var all []registry.Digest
	for _, c := range cs {
		if q, ok := c.Quarantine(); ok {
			all = append(all, q.Lifts...)
		}
	}
	return all
}
