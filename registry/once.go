package registry

import (
	"context"
	"time"
)

// Leases lets one of several processes do what only one should. Times are the callers',
// so their clocks must agree better than leases are long.
type Leases interface {
	// AcquireLease gives a lease to a holder until a time, unless another holder has it
	// still at now, and reports whether the holder has it. A holder renews its own.
	AcquireLease(ctx context.Context, name, holder string, now, until time.Time) (bool, error)
	// ReleaseLease gives a lease up. That of another holder stays.
	ReleaseLease(ctx context.Context, name, holder string) error
}

// Idempotency remembers answers to requests that may arrive twice.
type Idempotency interface {
	// ClaimKey makes a key the claimant's until c.Until, and gives nil, or else the answer
	// that was saved under it. Errors: CodeConflict while another claimant is at work on
	// it; CodeInvalid when it was used for another request. What has run out by c.Now
	// counts for nothing, and is forgotten some time.
	ClaimKey(ctx context.Context, c KeyClaim) (*KeptAnswer, error)
	// RenewKey lets the claimant keep the key until c.Until. Errors: CodeConflict when it
	// is not its any more.
	RenewKey(ctx context.Context, c KeyClaim) error
	// SaveAnswer keeps the answer to the claimant's request until c.Until. Errors: as RenewKey.
	SaveAnswer(ctx context.Context, c KeyClaim, answer KeptAnswer) error
	// FreeKey ends a claim without an answer. Ending what is not there succeeds.
	FreeKey(ctx context.Context, c KeyClaim) error
}

// KeyClaim is a request that works on a key.
type KeyClaim struct {
	Principal string // whose key it is; others have the same key for themselves
	Key       string
	Request   Digest // of all that makes two requests the same
	Claimant  string // unlike that of every other claim
	Now       time.Time
	Until     time.Time
}

// KeptAnswer is an answer as it was sent.
type KeptAnswer struct {
	Status int
	Type   string // media type; empty: there is no body
	Body   []byte
}
