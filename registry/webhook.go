package registry

import (
	"crypto/rand"
	"encoding/base64"
	"slices"
	"time"
)

// Webhook is an address that is told of events.
type Webhook struct {
	URL         string      `json:"url"`
	Environment string      `json:"environment,omitempty"` // empty: all
	Model       string      `json:"model,omitempty"`       // empty: all
	Kinds       []EventKind `json:"kinds,omitempty"`       // none: all
	Secret      []byte      `json:"secret"`                // what deliveries are signed with; told once, to who registers
	Created     time.Time   `json:"created"`
	After       int64       `json:"after"`            // sequence number of the last event that it is not told of
	Resumed     time.Time   `json:"resumed,omitzero"` // when somebody last asked to go on
}

// Wants reports whether the webhook is told of an event.
func (w Webhook) Wants(e Event) bool {
	return e.Seq > w.After &&
		(w.Environment == "" || w.Environment == e.Environment) && (w.Model == "" || w.Model == e.Model) &&
		(len(w.Kinds) == 0 || slices.Contains(w.Kinds, e.Kind))
}

// NewWebhookSecret makes a secret of as many bytes as Standard Webhooks wants.
func NewWebhookSecret() []byte {
	secret := make([]byte, 32)
	_, _ = rand.Read(secret) // it never fails: see crypto/rand
	return secret
}

// SecretText is the secret as libraries of Standard Webhooks take it.
func (w Webhook) SecretText() string {
	return "whsec_" + base64.StdEncoding.EncodeToString(w.Secret)
}

// Delivery is how far a webhook was told. Who delivers writes it, nobody else.
type Delivery struct {
	Delivered   int64     `json:"delivered"`            // sequence number of the last event that is done with
	Damage      DamageRef `json:"damage,omitzero"`      // the last damage that is done with
	Attempts    int       `json:"attempts,omitempty"`   // at the next one, that failed
	NextAttempt time.Time `json:"nextAttempt,omitzero"` // not before
	LastError   string    `json:"lastError,omitempty"`
	Suspended   time.Time `json:"suspended,omitzero"` // when it was given up; events wait until it is resumed
}

// DamageRef identifies damage by its place in the order in which damage is found.
type DamageRef struct {
	Found  time.Time `json:"found"`
	Digest Digest    `json:"digest"`
}

// Before reports whether damage was found after the damage that r names.
func (r DamageRef) Before(d Damage) bool {
	return Damage{Found: r.Found, Digest: r.Digest}.CompareFound(d) < 0
}

// Active reports whether deliveries to a webhook go on.
func (d Delivery) Active(w Webhook) bool {
	return d.Suspended.IsZero() || w.Resumed.After(d.Suspended)
}

// Webhooks is the registered webhooks by identifier.
type Webhooks = Table[Webhook]

// Deliveries is how far each webhook was told, by its identifier.
type Deliveries = Table[Delivery]
