package evidence

import (
	"fmt"
	"time"

	"mlpromote.dev/mlpromote/registry/artifact"
)

// otherRules is the reason against a parity report by rules of another version: its verdict means something else.
func (r Report) otherRules() string {
	return fmt.Sprintf("its rules are of version %d, and this program knows version %d: build again and verify", r.Rules, ReportRules)
}

// Replaces reports whether the destination had another engine to compare with.
func (r Report) Replaces(e artifact.Engine) bool {
	return r.Destination != nil && len(r.Destination.Engine) > 0 && !r.Destination.Engine.Names(e.Digest)
}

// Age returns since when a report can have been known: the earlier of the time at which it says that
// its verifier was done, and of what [Claim.Time] shows. What was recorded today can be years old. It
// is zero if either is unknown.
func (r Report) Age() time.Time {
	at, _ := r.Claim.Time()
	if at.IsZero() || r.FinishedOn.Before(at) {
		return r.FinishedOn
	}
	return at
}
