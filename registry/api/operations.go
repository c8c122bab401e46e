package api

import (
	"slices"
	"time"

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
	// Content is the stored content; nil until it was counted once.
	Content *storage.ContentUse `json:"content,omitempty"`
	// Damaged is content that cannot be served, the first [MaxOperationsList]; DamagedCount counts all.
	Damaged      []storage.Damage   `json:"damaged"`
	DamagedCount int                `json:"damagedCount"`
	Scrub        storage.ScrubState `json:"scrub"`
	// Collection is the last garbage collection of any replica; nil if none is known.
	Collection *storage.CollectionRun `json:"collection,omitempty"`
	// Moves are promotions and rollbacks that began and have not ended, and Uploads counts blobs that are being pushed.
	Moves    []storage.PendingMove `json:"moves"`
	Uploads  int                   `json:"uploads"`
	Replicas []storage.Replica     `json:"replicas"`
	Keys     []KeyUse              `json:"keys"`
	Webhooks []WebhookUse          `json:"webhooks"`
}

// MaxOperationsList is how many items each list of [Operations] has at most.
const MaxOperationsList = 200

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
