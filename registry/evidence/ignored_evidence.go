package evidence

import (
	"strings"

	"mlpromote.dev/mlpromote/registry"
)

const (
	// MaxIgnored is how many pieces of ignored evidence are described.
	MaxIgnored = 32
	// maxIgnoredReason is the maximum size of one description, in bytes.
	maxIgnoredReason = 400
)

// IgnoredEvidence is evidence that does not count. Untrusted users can attach any amount, so
// only the first [MaxIgnored] pieces are described. The others are only counted.
type IgnoredEvidence struct {
	Ignored      []Ignored `json:"ignored,omitempty"`
	IgnoredCount int       `json:"ignoredCount,omitempty"` // of all pieces
}

// Ignore adds pieces of ignored evidence.
func (e *IgnoredEvidence) Ignore(more ...Ignored) {
	e.IgnoredCount += len(more)
	for _, i := range more[:min(len(more), max(0, MaxIgnored-len(e.Ignored)))] {
		i.Reason = registry.PlainText(i.Reason) // it may quote untrusted text
		if len(i.Reason) > maxIgnoredReason {
			i.Reason = strings.ToValidUTF8(i.Reason[:maxIgnoredReason], "") + "..."
		}
		e.Ignored = append(e.Ignored, i)
	}
}

// IgnoreAll adds the ignored evidence of other.
func (e *IgnoredEvidence) IgnoreAll(other IgnoredEvidence) {
	count := e.IgnoredCount + max(other.IgnoredCount, len(other.Ignored))
	e.Ignore(other.Ignored...)
	e.IgnoredCount = count
}

// LeftOut is an engine of a spec that a release was made without, because it could not be made and
// the build was asked to keep going.
type LeftOut struct {
	Label string        `json:"label"`
	Code  registry.Code `json:"code"` // class of the failure: "unavailable" if its toolchain was not to be had
}

// leftOut reads a statement of provenance about a release.
func (s Statement) leftOut() []LeftOut {
	var predicate struct {
		BuildDefinition struct {
			InternalParameters struct {
				LeftOut []LeftOut `json:"leftOut"`
			} `json:"internalParameters"`
		} `json:"buildDefinition"`
	}
	if s.PredicateType != PredicateProvenance || registry.DecodeSigned(s.Predicate, &predicate) != nil {
		return nil
	}
	return predicate.BuildDefinition.InternalParameters.LeftOut
}
