package evidence

import (
	"time"

	"mlpromote.dev/mlpromote/registry"
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
		return "until " + registry.UTC(w.Until)
	case w.Until.IsZero():
		return "from " + registry.UTC(w.From)
	}
	return "from " + registry.UTC(w.From) + " until " + registry.UTC(w.Until)
}
