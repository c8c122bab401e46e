package evidence

import (
	"fmt"
	"time"

	"mlpromote.dev/mlpromote/registry"
)

// TimeSource says what shows when a claim was made. The zero TimeSource: nothing does.
type TimeSource string

// What shows the time of a claim, strongest first.
const (
	// TimeStamped: a timestamp of an authority or log that environments.yaml trusts.
	TimeStamped TimeSource = "timestamp"
	// TimeRecorded: the history recorded the bundle at that time.
	TimeRecorded TimeSource = "history"
	// TimeClaimed: only the signer says so.
	TimeClaimed TimeSource = "claimed"
)

// Time returns a time by which the claim existed, and what shows it: a trusted timestamp over its
// signature, or else when the history recorded it, or else, where there is no history, the time that
// it claims. The time is zero if nothing shows it. Claimed times do not count beside a history.
// Otherwise whoever has a key whose window ended could sign a claim with any date and push it
// unrecorded.
func (c Claim) Time() (time.Time, TimeSource) {
	switch {
	case !c.Stamped.IsZero():
		return c.Stamped, TimeStamped
	case c.Recorded != 0:
		return c.RecordedAt, TimeRecorded
	case c.WithoutHistory:
		if at := c.claimedTime(); !at.IsZero() {
			return at, TimeClaimed
		}
	}
	return time.Time{}, ""
}

// windowRefuses returns why the window of the signer excludes the claim, or "".
func (c Claim) windowRefuses() string {
	if c.Window.IsZero() {
		return ""
	}
	at, by := c.Time()
	switch {
	case at.IsZero():
		return fmt.Sprintf("key %s is valid %s, and nothing shows when this was made", c.Signer, c.Window)
	case !c.Window.Contains(at):
		return fmt.Sprintf("key %s is valid %s, and this was made on %s (%s)", c.Signer, c.Window, registry.UTC(at), by)
	}
	return ""
}

// claimedTime returns the time that the claim states, or zero.
func (c Claim) claimedTime() time.Time {
	switch c.Statement.PredicateType {
	case PredicateParity, PredicatePerformance:
		read, _ := ReadReport(c)
		return read.FinishedOn
	case PredicateVSA:
		v, _ := c.Vsa()
		return v.TimeVerified
	case PredicateQuarantine:
		q, _ := c.Quarantine()
		return q.IssuedOn
	case PredicateApproval:
		a, _ := c.Approval()
		return a.ApprovedOn
	case PredicateBreakGlass:
		b, _ := c.BreakGlass()
		return b.ApprovedOn
	case PredicateProvenance:
		return c.Statement.provenanceMetadata().FinishedOn
	case PredicateRestrictions:
		var l RestrictionList
		_ = registry.DecodeSigned(c.Statement.Predicate, &l)
		return l.IssuedOn
	}
	return time.Time{}
}
