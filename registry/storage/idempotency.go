package storage

import (
	"context"
	"time"

	"mlpromote.dev/mlpromote/registry"
)

// What is kept for one principal. Its older answers are deleted first.
const (
	MaxKeptAnswers     = 256
	MaxKeptAnswerBytes = 16 << 20 // of bodies
)

// Idempotency stores answers to requests that may arrive twice.
type Idempotency interface {
	// ClaimKey claims a key for c.Lasting, by the clock of the catalog, and returns nil. If an
	// answer is saved under the key, it returns that. Expired keys do not count and are deleted
	// later. Errors: CodeConflict while another claimant has the key; CodeInvalid if it was used
	// for another request.
	ClaimKey(ctx context.Context, c KeyClaim) (*KeptAnswer, error)
	// RenewKey extends the claim to c.Lasting from now. Errors: CodeConflict if the claimant lost
	// the key.
	RenewKey(ctx context.Context, c KeyClaim) error
	// SaveAnswer stores the answer to the claimant's request for c.Lasting from now, and deletes answers
	// of the principal that are too many: see [MaxKeptAnswers]. Errors: CodeConflict if the claimant lost the key.
	SaveAnswer(ctx context.Context, c KeyClaim, answer KeptAnswer) error
	// FreeKey ends a claim without an answer. It succeeds if there is no such claim.
	FreeKey(ctx context.Context, c KeyClaim) error
}

// KeyClaim identifies a request that claims a key.
type KeyClaim struct {
	Principal string // owner of the key; each principal has its own keys
	Key       string
	Request   registry.Digest // of everything that identifies the request
	Claimant  string          // unique for each claim
	Lasting   time.Duration
}

// KeptAnswer is a response as it was sent.
type KeptAnswer struct {
	Status int
	Type   string // media type; empty: no body
	Body   []byte
}
