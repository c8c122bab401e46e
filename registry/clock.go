package registry

import "time"

// maxClockLead is how far the clock of a signer may be ahead of another one. The clocks of
// machines differ.
const maxClockLead = 5 * time.Minute

// ClaimsFuture reports whether a time that a signer claims is too far after now, by a clock that
// is trusted more: that of the catalog when it recorded the claim, or that of the reader. Then
// the claimed time is wrong.
func ClaimsFuture(claimed, now time.Time) bool { return claimed.After(now.Add(maxClockLead)) }

// Earlier returns the earlier of two times. A zero time is not known.
func Earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// UTC returns a time as RFC 3339 has it, in UTC and in whole seconds: "2026-11-27T10:00:00Z".
func UTC(t time.Time) string { return t.UTC().Format(time.RFC3339) }
