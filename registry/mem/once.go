package mem

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"time"

	"mlpromote.dev/mlpromote/registry/internal/catalog"
	"mlpromote.dev/mlpromote/registry/storage"
)

var (
	_ storage.Leases      = (*DB)(nil)
	_ storage.Idempotency = (*DB)(nil)
)

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

// ReleaseLease ends a lease.
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
func (db *DB) ClaimKey(ctx context.Context, c storage.KeyClaim) (*storage.KeptAnswer, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	db.mu.Lock()
	defer db.mu.Unlock()
	have, ok := db.answers[answerKey{c.Principal, c.Key}]
	if !ok || !have.until.After(db.now()) {
		db.answers[answerKey{c.Principal, c.Key}] = claimedAnswer{KeyClaim: c, until: db.now().Add(c.Lasting)}
		return nil, nil
	}
	answer := have.answer
	answer.Body = bytes.Clone(answer.Body)
	return catalog.KeptAnswer(c, string(have.Request), answer)
}

// RenewKey keeps a claim.
func (db *DB) RenewKey(ctx context.Context, c storage.KeyClaim) error {
	return db.changeClaim(ctx, c, storage.KeptAnswer{})
}

// SaveAnswer ends a claim with an answer.
func (db *DB) SaveAnswer(ctx context.Context, c storage.KeyClaim, answer storage.KeptAnswer) error {
	answer.Body = catalog.NotNull(answer.Body)
	if err := db.changeClaim(ctx, c, answer); err != nil {
		return err
	}
	db.deleteSurplus(c.Principal)
	return nil
}

// deleteSurplus deletes the answers of a principal that are too many.
func (db *DB) deleteSurplus(principal string) {
	db.mu.Lock()
	defer db.mu.Unlock()
	var kept []claimedAnswer
	for _, a := range db.answers {
		if a.Principal == principal && a.answer.Status != 0 {
			kept = append(kept, a)
		}
	}
	slices.SortFunc(kept, func(a, b claimedAnswer) int { return cmp.Or(b.until.Compare(a.until), cmp.Compare(a.Key, b.Key)) })
	sizes := make([]catalog.AnswerSize, len(kept))
	for i, a := range kept {
		sizes[i] = catalog.AnswerSize{Key: a.Key, Bytes: int64(len(a.answer.Body))}
	}
	for _, key := range catalog.Surplus(sizes) {
		delete(db.answers, answerKey{principal, key})
	}
}

// changeClaim extends a claim and gives it an answer.
func (db *DB) changeClaim(ctx context.Context, c storage.KeyClaim, answer storage.KeptAnswer) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	db.mu.Lock()
	defer db.mu.Unlock()
	have, ok := db.answers[answerKey{c.Principal, c.Key}]
	if !ok || have.Claimant != c.Claimant || have.answer.Status != 0 {
		return catalog.Claimed(0, nil)
	}
	have.until, have.answer = db.now().Add(c.Lasting), answer
	db.answers[answerKey{c.Principal, c.Key}] = have
	return nil
}

// FreeKey ends a claim.
func (db *DB) FreeKey(ctx context.Context, c storage.KeyClaim) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	db.mu.Lock()
	defer db.mu.Unlock()
	if have := db.answers[answerKey{c.Principal, c.Key}]; have.Claimant == c.Claimant && have.answer.Status == 0 {
		delete(db.answers, answerKey{c.Principal, c.Key})
	}
	return nil
}
