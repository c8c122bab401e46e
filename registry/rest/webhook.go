package rest

import (
	"time"

	"mlpromote.dev/mlpromote/registry/history"
)

// WebhookRequest is the body of POST webhooks and PUT webhooks/ID.
type WebhookRequest struct {
	ID          string              `json:"-" path:"id"` // of the webhook to change
	URL         string              `json:"url"`
	Environment string              `json:"environment,omitempty"` // absent: all
	Model       string              `json:"model,omitempty"`       // absent: all
	Kinds       []history.EventKind `json:"kinds,omitempty"`       // absent: all
}

// Webhook is a registered webhook with its delivery state.
type Webhook struct {
	ID string `json:"id"`
	WebhookRequest
	Created     time.Time `json:"created"`
	Secret      string    `json:"secret,omitempty"` // only in the response to POST
	Delivered   int64     `json:"delivered"`        // number of the last event that is finished
	Attempts    int       `json:"attempts"`         // failed attempts for the next one
	NextAttempt time.Time `json:"nextAttempt,omitzero"`
	LastError   string    `json:"lastError,omitempty"`
	Suspended   bool      `json:"suspended"` // deliveries have stopped; PUT resumes them
}
