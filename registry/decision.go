package registry

import (
	"fmt"
	"strings"
	"time"
)

// Decision is the result of a policy check. The zero Decision does not allow.
type Decision struct {
	Requirements []Requirement `json:"requirements"`
	IgnoredEvidence
	// Until is the instant from which the decision may be another one by the passing of time alone:
	// a freeze begins, or an approval expires. Zero: time does not change it.
	Until time.Time `json:"until,omitzero"`
	// Skipped says which requirements were skipped by a break-glass promotion; nil: all are met.
	Skipped *Skipped `json:"skipped,omitempty"`
	// Withheld are the nodes that do not get an engine of the release, whatever is decided.
	Withheld []Withheld `json:"withheld,omitempty"`
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
func (d Decision) UnmetOn(n Node) []Requirement { return unmetOn(n, d.Unmet()) }

// Skipped says which unmet requirements a promotion skipped, and who agreed to that.
type Skipped struct {
	Requirements []string `json:"requirements"`
	Approvers    []string `json:"approvers"` // as messages show them
	Comments     []string `json:"comments"`
}

// skips begins what [Skipped.String] says.
const skips = "break-glass: skips "

// SaysSkipped reports whether a text begins as [Skipped.String] does. Of the reasons in the history, only those of
// break-glass promotions do.
func SaysSkipped(text string) bool { return strings.HasPrefix(text, skips) }

// String describes it in one line of at most [MaxText] bytes: what, who and why.
func (s Skipped) String() string {
	return PlainText(fmt.Sprintf(skips+"%s; approved by %s: %s", strings.Join(s.Requirements, ", "),
		strings.Join(s.Approvers, ", "), strings.Join(s.Comments, "; ")))
}
