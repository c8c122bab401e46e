package policy

import (
	"time"

	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
)

// Decision is the result of a policy check. The zero Decision does not allow.
type Decision struct {
	Requirements []Requirement `json:"requirements"`
	evidence.IgnoredEvidence
	// Until is the instant from which the decision may be another one by the passing of time alone:
	// a freeze begins, or an approval expires. Zero: time does not change it.
	Until time.Time `json:"until,omitzero"`
	// Skipped says which requirements were skipped by a break-glass promotion; nil: all are met.
	Skipped *evidence.Skipped `json:"skipped,omitempty"`
	// Withheld are the nodes that do not get an engine of the release, whatever is decided.
	Withheld []evidence.Withheld `json:"withheld,omitempty"`
}

// Allowed reports whether there are requirements and all of them are met or skipped.
func (d Decision) Allowed() bool {
	return len(d.Requirements) > 0 && len(d.Unmet()) == 0
}

// Unmet lists the requirements that are neither met nor skipped.
func (d Decision) Unmet() []Requirement {
	var unmet []Requirement
	for _, r := range d.Requirements {
		if !r.Met && !r.Skipped {
			unmet = append(unmet, r)
		}
	}
	return unmet
}

// UnmetOn lists the requirements that are not met for a node, with the reason in their detail.
func (d Decision) UnmetOn(n artifact.Node) []Requirement { return unmetOn(n, d.Unmet()) }
