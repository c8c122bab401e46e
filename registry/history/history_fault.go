package history

import (
	"fmt"
	"iter"

	"mlpromote.dev/mlpromote/registry"
)

// HistoryFault is a state of the catalog that the history does not explain. It reveals, for
// example, that the newest events were deleted, which leaves the hash chain intact.
type HistoryFault struct {
	Environment string          `json:"environment"`       // empty: the fault is in trust bundles
	Model       string          `json:"model"`             // empty: the fault is in restriction lists or trust bundles
	Release     registry.Digest `json:"release,omitempty"` // the head, or the release that has the fault
	// Manifests are those that no event explains: the release itself, summaries or other evidence.
	// Accepting the fault adds them to the history. Empty if the fault is in a head or in the list
	// that [HistoryIndex] reads.
	Manifests []registry.Digest `json:"manifests,omitempty"`
	Detail    string            `json:"detail"`
	// Hint says what to do; empty: look at backups, and accept the fault once it is explained.
	Hint string `json:"hint,omitempty"`
}

// Err returns the fault as an error: CodeTrust, with a hint.
func (f HistoryFault) Err() error {
	if f.Hint != "" {
		return registry.WithHint(registry.Errorf(registry.CodeTrust, "%s in %s: %s", f.Model, f.Environment, f.Detail), "%s", f.Hint)
	}
	if f.Model == "" {
		return registry.WithHint(registry.Errorf(registry.CodeTrust, "%s", f.Detail),
			"the catalog was changed without the history, or a writer was killed at the last step: look at backups and at the log of the database")
	}
	return registry.WithHint(
		registry.Errorf(registry.CodeTrust, "%s in %s: %s", f.Model, f.Environment, f.Detail),
		"events of the history are missing, or the catalog was changed without it: look at backups and at the log of the "+
			"database;"+
			" once that is explained, mlpromote history accept --model %s --env %s --reason TEXT allows promotions again",
		f.Model,
		f.Environment,
	)
}

// CheckHead compares a head and its hold with the newest events of its model in its
// environment. It reads the events, newest first, until they determine the head. It returns
// nil if they agree, or if a person accepted that they do not.
func (s ModelState) CheckHead(newest iter.Seq2[Event, error]) (*HistoryFault, error) {
	var said recordedHead
	for e, err := range newest {
		if err != nil {
			return nil, err
		}
		if e.Seq <= s.Seq && said.read(e) {
			break
		}
	}
	f := &HistoryFault{Environment: s.Environment, Model: s.Model, Release: s.Head.Release}
	switch {
	case said.release != s.Head.Release && said.release == "":
		f.Detail = fmt.Sprintf("the head is %s (%s), but no event of the history put it there", s.Head.Version,
			s.Head.Release)
	case said.release != s.Head.Release && s.Head.Release == "":
		f.Detail = fmt.Sprintf("there is no head, but the history put it at %s (%s) in event %d", said.version,
			said.release, said.seq)
	case said.release != s.Head.Release:
		f.Detail = fmt.Sprintf(
			"the head is %s (%s), but the newest event that moved it, event %d, put it at %s (%s)",
			s.Head.Version, s.Head.Release, said.seq, said.version, said.release)
	case said.hold != nil && asJSON(*said.hold) != asJSON(s.Head.Hold):
		f.Detail = fmt.Sprintf("the hold of the head is %q, but the history says %q", s.Head.Hold, *said.hold)
	default:
		return nil, nil
	}
	return f, nil
}

// recordedHead is the head according to the events, read from newest to oldest.
type recordedHead struct {
	release registry.Digest
	version string
	hold    *string // nil: unknown
	seq     int64   // of the event that put the release there
}

// read takes the next older event. It reports whether the head is now known.
func (h *recordedHead) read(e Event) (enough bool) {
	hold := ""
	switch e.Kind {
	case EventHoldSet, EventHoldRelease:
		if e.Kind == EventHoldSet {
			hold = e.Reason
		}
	case EventRollback:
		hold, enough = e.Reason, true
	case EventPublish, EventPromote, EventAccept:
		enough = true
	default:
		return false
	}
	if h.hold == nil && e.Kind != EventAccept { // it accepts any hold
		h.hold = &hold
	}
	if enough {
		h.release, h.version, h.seq = e.Release, e.Version, e.Seq
	}
	return enough
}

// asJSON returns a text as the history stores it: with invalid UTF-8 replaced.
func asJSON(text string) string { return string([]rune(text)) }
