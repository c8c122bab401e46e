package registry

import "strings"

const (
	// MaxIgnored bounds how many pieces of ignored evidence are described.
	MaxIgnored = 32
	// maxIgnoredReason bounds the description of one, in bytes.
	maxIgnoredReason = 400
)

// IgnoredEvidence is evidence that does not count. Strangers can attach any amount of it, so
// only the first [MaxIgnored] pieces are described. The rest are only counted.
type IgnoredEvidence struct {
	Ignored      []Ignored `json:"ignored,omitempty"`
	IgnoredCount int       `json:"ignoredCount,omitempty"` // of all pieces
}

// Ignore adds pieces of evidence.
func (e *IgnoredEvidence) Ignore(more ...Ignored) {
	e.IgnoredCount += len(more)
	for _, i := range more[:min(len(more), max(0, MaxIgnored-len(e.Ignored)))] {
		i.Reason = PlainText(i.Reason) // it may quote a stranger's text
		if len(i.Reason) > maxIgnoredReason {
			i.Reason = strings.ToValidUTF8(i.Reason[:maxIgnoredReason], "") + "..."
		}
		e.Ignored = append(e.Ignored, i)
	}
}

// IgnoreAll adds other ignored evidence.
func (e *IgnoredEvidence) IgnoreAll(other IgnoredEvidence) {
	count := e.IgnoredCount + max(other.IgnoredCount, len(other.Ignored))
	e.Ignore(other.Ignored...)
	e.IgnoredCount = count
}
