package mem

import (
	"bytes"
	"context"
	"time"

	"mlpromote.dev/mlpromote/registry"
)

var (
	_ registry.Leases      = (*DB)(nil)
	_ registry.Idempotency = (*DB)(nil)
)

type lease struct {
	holder string
	until  time.Time
}

type answerKey struct{ principal, key string }

type claimedAnswer struct {
	registry.KeyClaim
	until  time.Time
	answer *registry.KeptAnswer // nil: the claimant is at work
}

// AcquireLease compares and swaps.
func (db *DB) AcquireLease(ctx context.Context, name, holder string, lasting time.Duration) (bool, error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	db.mu.Lock()
	defer db.mu.Unlock()
	if have, ok := db.leases[name]; ok && have.holder != holder && have.until.After(db.now()) {
		return false, nil
	}
	db.leases[name] = lease{holder, db.now().Add(lasting)}
	return true, nil
}

// ReleaseLease gives a lease up.
func (db *DB) ReleaseLease(ctx context.Context, name, holder string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.leases[name].holder == holder {
		delete(db.leases, name)
	}
	return nil
}

// ClaimKey looks and claims at once.
func (db *DB) ClaimKey(ctx context.Context, c registry.KeyClaim) (*registry.KeptAnswer, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	db.mu.Lock()
	defer db.mu.Unlock()
	have, ok := db.answers[answerKey{c.Principal, c.Key}]
	switch {
	case !ok || !have.until.After(db.now()):
		db.answers[answerKey{c.Principal, c.Key}] = claimedAnswer{KeyClaim: c, until: db.now().Add(c.Lasting)}
		return nil, nil
	case have.Request != c.Request:
		return nil, registry.Errorf(registry.CodeInvalid, "idempotency key %q was used for another request: make a new one for each", c.Key)
	case have.answer == nil:
		return nil, registry.Errorf(registry.CodeConflict, "the same request is being worked on: wait for it")
	}
	kept := *have.answer
	kept.Body = bytes.Clone(kept.Body)
	return &kept, nil
}

// RenewKey keeps a claim.
func (db *DB) RenewKey(ctx context.Context, c registry.KeyClaim) error {
	return db.endClaim(ctx, c, nil)
}

// SaveAnswer ends a claim with an answer.
func (db *DB) SaveAnswer(ctx context.Context, c registry.KeyClaim, answer registry.KeptAnswer) error {
	answer.Body = append([]byte{}, answer.Body...)
	return db.endClaim(ctx, c, &answer)
}

func (db *DB) endClaim(ctx context.Context, c registry.KeyClaim, answer *registry.KeptAnswer) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	db.mu.Lock()
	defer db.mu.Unlock()
	have, ok := db.answers[answerKey{c.Principal, c.Key}]
	if !ok || have.Claimant != c.Claimant || have.answer != nil {
		return registry.Errorf(registry.CodeConflict, "the idempotency key has run out, or somebody else has it")
	}
	have.until, have.answer = db.now().Add(c.Lasting), answer
	db.answers[answerKey{c.Principal, c.Key}] = have
	return nil
}

// FreeKey ends a claim.
func (db *DB) FreeKey(ctx context.Context, c registry.KeyClaim) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	db.mu.Lock()
	defer db.mu.Unlock()
	if have := db.answers[answerKey{c.Principal, c.Key}]; have.Claimant == c.Claimant && have.answer == nil {
		delete(db.answers, answerKey{c.Principal, c.Key})
	}
	return nil
}
