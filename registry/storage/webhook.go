package storage

import (
	"crypto/rand"
	"encoding/base64"
	"slices"
	"strings"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/history"
)

// Webhook is an address that receives events.
type Webhook struct {
	URL         string              `json:"url"`
	Environment string              `json:"environment,omitempty"` // empty: all
	Model       string              `json:"model,omitempty"`       // empty: all
	Kinds       []history.EventKind `json:"kinds,omitempty"`       // none: all
	Secret      []byte              `json:"secret"`                // signs deliveries; shown once, when the webhook is registered
	Created     time.Time           `json:"created"`
	After       int64               `json:"after"`            // sequence number of the last event that it does not receive
	Resumed     time.Time           `json:"resumed,omitzero"` // when it was last resumed
}

// Wants reports whether the webhook receives an event.
func (w Webhook) Wants(e history.Event) bool {
	return e.Seq > w.After &&
		(w.Environment == "" || w.Environment == e.Environment) && (w.Model == "" || w.Model == e.Model) &&
		(len(w.Kinds) == 0 || slices.Contains(w.Kinds, e.Kind))
}

// NewWebhookSecret returns a secret of the length that Standard Webhooks requires.
func NewWebhookSecret() []byte {
	secret := make([]byte, 32)
	_, _ = rand.Read(secret) // it never fails: see crypto/rand
	return secret
}

// SecretText returns the secret in the form that libraries of Standard Webhooks take.
func (w Webhook) SecretText() string {
	return "whsec_" + base64.StdEncoding.EncodeToString(w.Secret)
}

// Delivery is the delivery state of a webhook. Only the deliverer writes it.
type Delivery struct {
	Delivered   int64     `json:"delivered"`            // sequence number of the last event that is finished
	Damage      DamageRef `json:"damage,omitzero"`      // the last damage that is finished
	Attempts    int       `json:"attempts,omitempty"`   // failed attempts for the next one
	NextAttempt time.Time `json:"nextAttempt,omitzero"` // not before this time
	LastError   string    `json:"lastError,omitempty"`
	Suspended   time.Time `json:"suspended,omitzero"` // when deliveries stopped; events wait until it is resumed
}

// DamageRef identifies damage by its place in the order in which damage is found.
type DamageRef struct {
	Found  time.Time       `json:"found"`
	Digest registry.Digest `json:"digest"`
}

// Before reports whether damage was found after the damage that r names.
func (r DamageRef) Before(d Damage) bool {
	return Damage{Found: r.Found, Digest: r.Digest}.CompareFound(d) < 0
}

// Active reports whether deliveries to a webhook continue.
func (d Delivery) Active(w Webhook) bool {
	return d.Suspended.IsZero() || w.Resumed.After(d.Suspended)
}

// Webhooks stores the registered webhooks by identifier.
type Webhooks = registry.Table[Webhook]

// Deliveries stores the delivery state of each webhook by its identifier.
type Deliveries = registry.Table[Delivery]

// WantsDamage reports whether the webhook receives damage.
func (w Webhook) WantsDamage(d Damage) bool {
	if len(w.Kinds) > 0 && !slices.Contains(w.Kinds, history.EventDamage) || !d.Found.After(w.Created) {
		return false
	}
	if w.Environment == "" && w.Model == "" {
		return true
	}
	return slices.ContainsFunc(d.Repositories, func(repository string) bool {
		environment, _, _ := strings.Cut(repository, "/")
		model, _ := registry.ModelOf(repository)
		return (w.Environment == "" || w.Environment == environment) && (w.Model == "" || w.Model == model)
	})
}
