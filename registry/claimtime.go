package registry

import (
	"fmt"
	"time"
)

// Window is the time in which statements of a key or identity count: from From on, and before
// Until. A zero time is no bound, and the zero Window is always.
type Window struct {
	From  time.Time `json:"from,omitzero"`
	Until time.Time `json:"until,omitzero"`
}

// IsZero reports whether the window has no bound.
func (w Window) IsZero() bool { return w.From.IsZero() && w.Until.IsZero() }

// Contains reports whether a time is in the window. The zero time, which is unknown, is only in a
// window without bounds.
func (w Window) Contains(at time.Time) bool {
	if w.IsZero() {
		return true
	}
	return !at.IsZero() && !at.Before(w.From) && (w.Until.IsZero() || at.Before(w.Until))
}

// Intersect returns the window that is in both.
func (w Window) Intersect(o Window) Window {
	if o.From.After(w.From) {
		w.From = o.From
	}
	if w.Until.IsZero() || !o.Until.IsZero() && o.Until.Before(w.Until) {
		w.Until = o.Until
	}
	return w
}

// Equal reports whether both have the same bounds.
func (w Window) Equal(o Window) bool { return w.From.Equal(o.From) && w.Until.Equal(o.Until) }

// String names the bounds, such as "from 2026-11-01T00:00:00Z until 2026-12-01T00:00:00Z"; "" without
// any.
func (w Window) String() string {
	switch {
	case w.IsZero():
		return ""
	case w.From.IsZero():
		return "until " + utc(w.Until)
	case w.Until.IsZero():
		return "from " + utc(w.From)
	}
	return "from " + utc(w.From) + " until " + utc(w.Until)
}

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
		return fmt.Sprintf("key %s is valid %s, and this was made on %s (%s)", c.Signer, c.Window, utc(at), by)
	}
	return ""
}
