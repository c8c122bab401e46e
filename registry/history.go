package registry

import (
	"fmt"
	"time"
)

// EventKind is what happened.
type EventKind string

// The kinds of events.
const (
	EventPublish     EventKind = "publish" // build moved the first environment's head
	EventAttach      EventKind = "attach"  // evidence came in
	EventPromote     EventKind = "promote"
	EventRollback    EventKind = "rollback"
	EventHoldSet     EventKind = "hold-set"
	EventHoldRelease EventKind = "hold-release"
	// EventConfigure: environments, access or keys of the service changed. It has no model.
	EventConfigure EventKind = "configure"
	// EventAccept: a person accepted a fault of the history, with the reason.
	EventAccept EventKind = "history-accept"
)

// EventDamage is the webhook kind for damaged content. It is not an event of the history.
const EventDamage EventKind = "damage"

// WebhookKinds lists every kind that a webhook can receive.
func WebhookKinds() []EventKind { return append(EventKinds(), EventDamage) }

// EventKinds lists every kind that the history has.
func EventKinds() []EventKind {
	return []EventKind{EventPublish, EventAttach, EventPromote, EventRollback, EventHoldSet, EventHoldRelease, EventConfigure, EventAccept}
}

// Event is one row of the history: append-only and hash-chained. Hash covers every
// other field through the canonical JSON, Prev included.
type Event struct {
	Seq           int64     `json:"seq"` // 1, 2, 3, ... without gaps
	Time          time.Time `json:"time"`
	Kind          EventKind `json:"kind"`
	Environment   string    `json:"environment"`
	Model         string    `json:"model"`
	Version       string    `json:"version,omitempty"`       // tag of the release
	Release       Digest    `json:"release,omitempty"`       // the head after the event
	Previous      Digest    `json:"previous,omitempty"`      // the head before it
	Subject       Digest    `json:"subject,omitempty"`       // attach: what the evidence is about
	PredicateType string    `json:"predicateType,omitempty"` // attach
	Evidence      []Digest  `json:"evidence,omitempty"`      // bundle manifests that came in with the event
	Signer        string    `json:"signer,omitempty"`        // attach: key identifier
	Reason        string    `json:"reason,omitempty"`
	Principal     string    `json:"principal,omitempty"` // who asked for it; empty: whoever has the data directory
	Prev          Digest    `json:"prev,omitempty"`      // Hash of the event before; empty for the first
	Hash          Digest    `json:"hash,omitempty"`
}

// Chain gives the event its place after the event before it: sequence number,
// previous hash and own hash. The zero Event stands for "none before".
func (e Event) Chain(before Event) (Event, error) {
	e.Seq, e.Prev, e.Hash = before.Seq+1, before.Hash, ""
	e.Time = e.Time.UTC().Truncate(time.Microsecond)
	hash, err := CanonicalDigest(e)
	if err != nil {
		return Event{}, err
	}
	e.Hash = hash
	return e, nil
}

// VerifyChain checks that e follows before and that nothing in it was changed.
// Errors: CodeTrust, naming the row.
func (e Event) VerifyChain(before Event) error {
	want, err := e.Chain(before)
	if err != nil {
		return err
	}
	switch {
	case e.Seq != want.Seq:
		return Errorf(CodeTrust, "history row %d follows row %d: rows are missing or were added", e.Seq, before.Seq)
	case e.Prev != want.Prev:
		return Errorf(CodeTrust, "history row %d names %s as the row before it, which is %s: a row was changed or replaced", e.Seq, e.Prev, before.Hash)
	case e.Hash != want.Hash || !e.Time.Equal(want.Time):
		return Errorf(CodeTrust, "history row %d (%s %s in %s) was changed: its hash should be %s and is %s", e.Seq, e.Kind, e.Model, e.Environment, want.Hash, e.Hash)
	}
	return nil
}

// Head is the release that a model has in an environment.
type Head struct {
	Environment string    `json:"environment"`
	Model       string    `json:"model"`
	Release     Digest    `json:"release"`
	Version     string    `json:"version"` // tag of the release
	Since       time.Time `json:"since"`
	Hold        string    `json:"hold,omitempty"` // reason why promotions wait; set by a rollback
}

// Intent is a promotion that was begun. It outlives a crash, so that a re-run or an
// operator sees what was under way. Where tags are no part of the catalog, publications
// and rollbacks begin with one too.
type Intent struct {
	Environment string // destination
	Model       string
	From        string // empty: a publication; the destination itself: a rollback
	Release     Digest
	Begun       time.Time // by the clock of the catalog, in UTC to the microsecond; [Intents] sets it
}

// IntentTime is how long an intent stands if its head does not move.
const IntentTime = 24 * time.Hour

// Abandoned says why an intent will not be finished, or "" while it stands. head is that of
// its environment and model, or the zero Head. An intent whose head has moved stands until its
// mirror is written; then it is ended. With no environments in envs, none counts as removed.
func (i Intent) Abandoned(envs Environments, head Head, now time.Time) string {
	if head.Release == i.Release {
		return ""
	}
	if _, err := envs.Find(i.Environment); err != nil && len(envs.List) > 0 {
		return "there is no environment " + i.Environment + " any more"
	}
	if age := now.Sub(i.Begun); age >= IntentTime {
		return fmt.Sprintf("it began %v ago and did not move the head", age.Truncate(time.Minute))
	}
	return ""
}
