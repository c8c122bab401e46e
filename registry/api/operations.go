package api

import (
	"slices"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/policy"
	"mlpromote.dev/mlpromote/registry/storage"
	"mlpromote.dev/mlpromote/registry/trust"
)

// Operations is what administrators of a service look after, as one replica knows it.
type Operations struct {
	At      time.Time `json:"at"` // by the clock of the catalog
	Version string    `json:"version"`
	// Content is what is stored; nil until it was counted once.
	Content *ContentUse `json:"content,omitempty"`
	// Damaged is content that cannot be served, the first [MaxOperationsList]; DamagedCount counts all.
	Damaged      []storage.Damage   `json:"damaged"`
	DamagedCount int                `json:"damagedCount"`
	Scrub        storage.ScrubState `json:"scrub"`
	// Collection is the last garbage collection of any replica; nil if none is known.
	Collection *CollectionRun `json:"collection,omitempty"`
	// Moves are promotions and rollbacks that began and have not ended, and Uploads counts blobs that are being pushed.
	Moves    []PendingMove `json:"moves"`
	Uploads  int           `json:"uploads"`
	Replicas []Replica     `json:"replicas"`
	Keys     []KeyUse      `json:"keys"`
	Webhooks []WebhookUse  `json:"webhooks"`
}

// MaxOperationsList is how many items each list of [Operations] has at most.
const MaxOperationsList = 200

// ContentUse is what repositories hold, as it was counted at one time.
type ContentUse struct {
	At           time.Time `json:"at"`
	Storage      string    `json:"storage"` // "directory", or that of the bucket
	Repositories int       `json:"repositories"`
	Manifests    int       `json:"manifests"` // each digest once
	Blobs        int       `json:"blobs"`     // likewise
	Bytes        int64     `json:"bytes"`     // likewise
	Marked       int       `json:"marked"`    // records that garbage collection will delete unless they are used again
	// Largest are the repositories that hold most, the largest first.
	Largest []RepositoryUse `json:"largest"`
}

// RepositoryUse is what one repository holds. Others can hold the same bytes.
type RepositoryUse struct {
	Repository string `json:"repository"`
	Bytes      int64  `json:"bytes"`
}

// CollectionRun is a garbage collection that ended.
type CollectionRun struct {
	Ended     time.Time `json:"ended"`
	TookNs    int64     `json:"tookNs"`
	Marked    int       `json:"marked"`
	Unmarked  int       `json:"unmarked"`
	Manifests int       `json:"manifests"` // deleted
	Members   int       `json:"members"`   // blobs taken out of repositories
	Blobs     int       `json:"blobs"`     // deleted
	Bytes     int64     `json:"bytes"`     // of them
	// Skipped are repositories that it did not touch, with the reason.
	Skipped []string `json:"skipped,omitempty"`
	Failed  bool     `json:"failed,omitempty"` // the log of the replica says why
}

// PendingMove is an [history.Intent] as clients see it.
type PendingMove struct {
	Environment string          `json:"environment"`
	Model       string          `json:"model"`
	From        string          `json:"from,omitempty"` // equal to Environment for a rollback
	Release     registry.Digest `json:"release"`
	Begun       time.Time       `json:"begun"`
}

// Replica is a process that serves a catalog. It says this of itself about once a minute.
type Replica struct {
	Name          string                     `json:"name"`
	Host          string                     `json:"host"` // name of its machine
	Version       string                     `json:"version"`
	Started       time.Time                  `json:"started"`
	Seen          time.Time                  `json:"seen"` // by the clock of the catalog
	Configuration history.ConfigurationState `json:"configuration"`
	// CollectEvery and ScrubEvery are the intervals of its settings; 0: it does not.
	CollectEvery time.Duration  `json:"collectEveryNs"`
	ScrubEvery   time.Duration  `json:"scrubEveryNs"`
	Collection   *CollectionRun `json:"collection,omitempty"` // its last one
	Stopped      bool           `json:"stopped,omitempty"`    // it ended, as it was asked to
}

// Replicas are the replicas of a catalog, by name.
type Replicas = registry.Table[Replica]

// SilentAfter is how long after it was last seen a replica that did not stop counts as lost.
const SilentAfter = 3 * time.Minute

// Lost reports whether the replica ended without saying so.
func (r Replica) Lost(now time.Time) bool { return !r.Stopped && now.Sub(r.Seen) > SilentAfter }

// KeyUse is a key or identity of the trust list: what it may do, and what it did.
type KeyUse struct {
	Name string `json:"name"` // as the trust list names it
	// Signer is how claims and events name it: for a key its identifier. Empty if its file is missing, and for an
	// identity, whose certificates have keys of their own.
	Signer string          `json:"signer,omitempty"`
	Roles  []evidence.Role `json:"roles"`
	// MaySign are the predicate types of its roles.
	MaySign []string `json:"maySign"`
	// Environments are those that its resources reach.
	Environments []string          `json:"environments"`
	Resources    []string          `json:"resources"`
	State        evidence.KeyState `json:"state"`
	RetiredAt    time.Time         `json:"retiredAt,omitzero"`
	Window       evidence.Window   `json:"window,omitzero"`
	NodeTypes    []string          `json:"nodeTypes,omitempty"`
	// Statements counts the events of the history that name it as the signer; Last is the time of the newest.
	Statements int       `json:"statements"`
	Last       time.Time `json:"last,omitzero"`
}

// NewKeyUse describes an entry of the trust list of es. signer is how events name it, or empty.
func NewKeyUse(es policy.Environments, e trust.TrustEntry, signer string) KeyUse {
	k := KeyUse{
		Name: e.String(), Signer: signer, Roles: e.Roles, Resources: e.Resources, State: e.EffectiveState(), RetiredAt: e.RetiredAt, Window: e.Window,
		NodeTypes: e.NodeTypes, MaySign: maySign(e.Roles), Environments: []string{},
	}
	for _, env := range es.List {
		if e.Reaches("oci://" + es.Registry + "/" + env.Name) {
			k.Environments = append(k.Environments, env.Name)
		}
	}
	return k
}

// maySign are the predicate types that roles may sign, in the order in which a release gets them.
func maySign(roles []evidence.Role) []string {
	types := []string{}
	for _, predicate := range []string{
		evidence.PredicateSign, evidence.PredicateProvenance, evidence.PredicateTestResult, evidence.PredicateParity, evidence.PredicatePerformance, evidence.PredicateApproval, evidence.PredicateBreakGlass,
		evidence.PredicateQuarantine, evidence.PredicateRestrictions, evidence.PredicateVSA,
	} {
		role, _ := evidence.RoleFor(predicate)
		forPeople := slices.Contains(roles, evidence.RoleAttester) && (predicate == evidence.PredicateApproval || predicate == evidence.PredicateQuarantine)
		if slices.Contains(roles, role) || forPeople {
			types = append(types, predicate)
		}
	}
	if slices.Contains(roles, evidence.RolePublisher) {
		types = append(types, trust.PredicateTrustBundle)
	}
	return types
}

// WebhookUse is a webhook with the state of its deliveries, without its secret.
type WebhookUse struct {
	ID          string              `json:"id"`
	URL         string              `json:"url"`
	Environment string              `json:"environment,omitempty"` // empty: all
	Model       string              `json:"model,omitempty"`       // empty: all
	Kinds       []history.EventKind `json:"kinds,omitempty"`       // none: all
	Created     time.Time           `json:"created"`
	Delivered   int64               `json:"delivered"` // sequence number of the last event that is finished
	Waiting     int64               `json:"waiting"`   // events after it, among them those that it does not want
	Attempts    int                 `json:"attempts"`  // failed attempts for the next one
	NextAttempt time.Time           `json:"nextAttempt,omitzero"`
	LastError   string              `json:"lastError,omitempty"`
	Suspended   bool                `json:"suspended"`
}

// NewWebhookUse describes a webhook. newest is the sequence number of the newest event; nil means that nothing was
// delivered yet.
func NewWebhookUse(id string, w storage.Webhook, d *storage.Delivery, newest int64) WebhookUse {
	state := storage.Delivery{Delivered: w.After}
	if d != nil {
		state = *d
	}
	return WebhookUse{
		ID: id, URL: w.URL, Environment: w.Environment, Model: w.Model, Kinds: w.Kinds, Created: w.Created,
		Delivered: state.Delivered, Waiting: max(0, newest-state.Delivered), Attempts: state.Attempts, NextAttempt: state.NextAttempt,
		LastError: state.LastError, Suspended: !state.Active(w),
	}
}
