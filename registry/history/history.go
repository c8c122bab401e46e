package history

import (
	"context"
	"fmt"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/policy"
)

// EventKind says what an event changed.
type EventKind string

// The kinds of events.
const (
	EventPublish     EventKind = "publish" // a build moved the first environment's head
	EventAttach      EventKind = "attach"  // evidence was added
	EventPromote     EventKind = "promote"
	EventRollback    EventKind = "rollback"
	EventHoldSet     EventKind = "hold-set"
	EventHoldRelease EventKind = "hold-release"
	// EventConfigure: the environments, access or keys of the service changed. It has no model.
	EventConfigure EventKind = "configure"
	// EventRestrict: an approver signed the next restriction list of an environment. It has no model;
	// Version is the counter of the list, and Evidence the digest of its bundle.
	EventRestrict EventKind = "restrict"
	// EventTrust: a publisher signed the next trust bundle of the registry. It has no environment and no
	// model; Version is that of the bundle, and Evidence the digest of it.
	EventTrust EventKind = "trust-bundle"
	// EventAccept: a person accepted a fault of the history, with the reason.
	EventAccept EventKind = "history-accept"
	// EventRestore: the catalog was restored from a backup, and later events are lost. The reason says
	// what is not known. It has no environment and no model.
	EventRestore EventKind = "restore"
)

// EventDamage is the webhook kind for damaged content. It is not an event of the history.
const EventDamage EventKind = "damage"

// WebhookKinds lists the kinds that a webhook can receive.
func WebhookKinds() []EventKind { return append(EventKinds(), EventDamage) }

// EventKinds lists the kinds of events in the history.
func EventKinds() []EventKind {
	return []EventKind{
		EventPublish,
		EventAttach,
		EventPromote,
		EventRollback,
		EventHoldSet,
		EventHoldRelease,
		EventConfigure,
		EventRestrict,
		EventTrust,
		EventAccept,
		EventRestore,
	}
}

// Event is one entry of the history, which is append-only and hash-chained. Hash covers the
// canonical JSON of all other fields, including Prev.
type Event struct {
	Seq           int64             `json:"seq"` // 1, 2, 3, ... without gaps
	Time          time.Time         `json:"time"`
	Kind          EventKind         `json:"kind"`
	Environment   string            `json:"environment"`
	Model         string            `json:"model"`
	Version       string            `json:"version,omitempty"`       // tag of the release
	Release       registry.Digest   `json:"release,omitempty"`       // the head after the event
	Previous      registry.Digest   `json:"previous,omitempty"`      // the head before it
	Subject       registry.Digest   `json:"subject,omitempty"`       // attach: what the evidence is about
	PredicateType string            `json:"predicateType,omitempty"` // attach
	Evidence      []registry.Digest `json:"evidence,omitempty"`      // bundle manifests that the event added
	Signer        string            `json:"signer,omitempty"`        // attach and promote: key identifier
	Reason        string            `json:"reason,omitempty"`
	Skipped       []string          `json:"skipped,omitempty"`   // promote by break-glass: the requirements that it skipped
	Principal     string            `json:"principal,omitempty"` // the caller; empty: a local user of the data directory
	Person        *evidence.Person  `json:"person,omitempty"`    // publish, and attach of what a builder signed: who signed in, without Name; nil: not known
	// Policy is the digest of the rules of the environment, as canonical JSON, and Environments that of the
	// bytes of environments.yaml, by which a head moved: the same as in the summary of a promotion.
	// Promote and rollback.
	Policy       registry.Digest `json:"policy,omitempty"`
	Environments registry.Digest `json:"environments,omitempty"`
	Prev         registry.Digest `json:"prev,omitempty"` // Hash of the event before; empty for the first
	Hash         registry.Digest `json:"hash,omitempty"`
}

// Chain sets the sequence number, the previous hash and the hash of the event, which follows
// before. The zero Event stands for the start of the history.
func (e Event) Chain(before Event) (Event, error) {
	e.Seq, e.Prev, e.Hash = before.Seq+1, before.Hash, ""
	e.Time = e.Time.UTC().Truncate(time.Microsecond)
	hash, err := registry.CanonicalDigest(e)
	if err != nil {
		return Event{}, err
	}
	e.Hash = hash
	return e, nil
}

// VerifyChain checks that e follows before and that neither was changed. Errors: CodeTrust,
// with the sequence number.
func (e Event) VerifyChain(before Event) error {
	want, err := e.Chain(before)
	if err != nil {
		return err
	}
	switch {
	case e.Seq != want.Seq:
		return registry.Errorf(registry.CodeTrust, "event %d follows event %d: events are missing or were added", e.Seq, before.Seq)
	case e.Prev != want.Prev:
		return registry.Errorf(registry.CodeTrust,
			"event %d names %s as the event before it, which is %s: an event was changed or replaced", e.Seq, e.Prev,
			before.Hash)
	case e.Hash != want.Hash || !e.Time.Equal(want.Time):
		return registry.Errorf(registry.CodeTrust, "event %d (%s %s in %s) was changed: its content gives hash %s, but it has %s",
			e.Seq, e.Kind, e.Model, e.Environment, want.Hash, e.Hash)
	}
	return nil
}

// Head is the release that a model has in an environment.
type Head struct {
	Environment string          `json:"environment"`
	Model       string          `json:"model"`
	Release     registry.Digest `json:"release"`
	Version     string          `json:"version"` // tag of the release
	Since       time.Time       `json:"since"`
	Hold        string          `json:"hold,omitempty"` // why promotions are blocked; set by a rollback
	// BreakGlass says what the promotion of the release skipped, who agreed to that, and why; empty if
	// it skipped nothing. [storage.Catalog] leaves it empty.
	BreakGlass string `json:"breakGlass,omitempty"`
}

// Intent is a promotion that has begun. It survives a crash, so that a retry or an operator
// sees what was in progress. If tags are not part of the catalog, publications and rollbacks
// also begin with an intent.
type Intent struct {
	Environment string // destination
	Model       string
	From        string // empty for a publication; equal to Environment for a rollback
	Release     registry.Digest
	Begun       time.Time // by the clock of the catalog, in UTC to the microsecond; [storage.Intents] sets it
}

// IntentTime is how long an intent is valid if its head does not move.
const IntentTime = 24 * time.Hour

// Abandoned returns why an intent will not be finished, or "" while it is valid. head is the
// head of its environment and model, or the zero Head. An intent whose head has moved is valid
// until its mirror is written, which ends it. If envs is empty, no environment counts as
// removed.
func (i Intent) Abandoned(envs policy.Environments, head Head, now time.Time) string {
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

// HistoryReader reads the events that a caller may see.
type HistoryReader interface {
	History(ctx context.Context, q HistoryQuery) ([]Event, error)
}

// NewestHash returns the hash of the newest event about a model that the caller may see, or "".
func NewestHash(ctx context.Context, r HistoryReader, model string) (registry.Digest, error) {
	newest, err := r.History(ctx, HistoryQuery{Model: model, Descending: true, Limit: 1})
	if err != nil || len(newest) == 0 {
		return "", err
	}
	return newest[0].Hash, nil
}

// HistoryQuery selects events. Zero fields select all events.
type HistoryQuery struct {
	Environment string
	Model       string
	Kind        EventKind
	Subject     registry.Digest
	Hash        registry.Digest // of the event itself; selects at most one
	// Signer is the identifier of a key, and Principal the name of a caller. Each costs a look at every event that the
	// rest selects.
	Signer     string
	Principal  string
	After      int64 // sequence number, exclusive
	Before     int64 // sequence number, exclusive; 0: no bound
	Descending bool  // newest first
	Limit      int   // maximum number of events; 0: all
}

// SelectsBy reports whether an event is of the signer and the principal of the query, if it names them.
func (q HistoryQuery) SelectsBy(e Event) bool {
	return (q.Signer == "" || e.Signer == q.Signer) && (q.Principal == "" || e.Principal == q.Principal)
}

// Builds reports whether the event is about evidence of a builder: a signature or provenance.
func (e Event) Builds() bool {
	role, ok := evidence.RoleFor(e.PredicateType)
	return e.Kind == EventAttach && ok && role == evidence.RoleBuilder
}

// Publisher returns who caused the event; only the name of the principal where the history has no more.
func (e Event) Publisher() evidence.Person {
	if e.Person != nil {
		return *e.Person
	}
	return evidence.Person{Principal: e.Principal}
}

// ModelHeads is a model with its heads.
type ModelHeads struct {
	Name  string `json:"name"`
	Heads []Head `json:"heads"` // by environment
}
