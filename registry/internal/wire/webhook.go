package wire

import (
	"time"

	"mlpromote.dev/mlpromote/registry"
)

// WebhookRequest is the body of POST webhooks and PUT webhooks/ID.
type WebhookRequest struct {
	URL         string               `json:"url"`
	Environment string               `json:"environment,omitempty"` // absent: all
	Model       string               `json:"model,omitempty"`       // absent: all
	Kinds       []registry.EventKind `json:"kinds,omitempty"`       // absent: all
}

// Webhook is a registered webhook and how far it was told.
type Webhook struct {
	ID string `json:"id"`
	WebhookRequest
	Created     time.Time `json:"created"`
	Secret      string    `json:"secret,omitempty"` // in the answer to POST alone
	Delivered   int64     `json:"delivered"`        // number of the last event that is done with
	Attempts    int       `json:"attempts"`         // at the next one, that failed
	NextAttempt time.Time `json:"nextAttempt,omitzero"`
	LastError   string    `json:"lastError,omitempty"`
	Suspended   bool      `json:"suspended"` // given up; PUT resumes it
}
