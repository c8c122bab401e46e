package registry

import (
	"context"
	"time"
)

// Leases lets one process at a time do something. Leases expire by the clock of the catalog,
// so the clocks of the processes do not matter.
type Leases interface {
	// AcquireLease takes or renews a lease for a holder, unless another holder has it. It
	// reports whether the holder has the lease now.
	AcquireLease(ctx context.Context, name, holder string, lasting time.Duration) (bool, error)
	// ReleaseLease gives a lease up. That of another holder stays.
	ReleaseLease(ctx context.Context, name, holder string) error
}

// Idempotency remembers answers to requests that may arrive twice.
type Idempotency interface {
	// ClaimKey gives a key to the claimant for c.Lasting, by the clock of the catalog, and
	// returns nil. If an answer was saved under the key, it returns that. Errors: CodeConflict
	// while another claimant has the key; CodeInvalid if it was used for another request.
	// Expired keys do not count, and are deleted at some time.
	ClaimKey(ctx context.Context, c KeyClaim) (*KeptAnswer, error)
	// RenewKey extends the claim to c.Lasting from now. Errors: CodeConflict if the claimant
	// no longer has the key.
	RenewKey(ctx context.Context, c KeyClaim) error
	// SaveAnswer stores the answer to the claimant's request for c.Lasting from now. Errors: as
	// RenewKey.
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
	Lasting   time.Duration
}

// KeptAnswer is an answer as it was sent.
type KeptAnswer struct {
	Status int
	Type   string // media type; empty: there is no body
	Body   []byte
}
