package postgres

import (
	"context"
	"time"

	"mlpromote.dev/mlpromote/registry/internal/catalog"
	"mlpromote.dev/mlpromote/registry/postgres/internal/dbsqlc"
	"mlpromote.dev/mlpromote/registry/storage"
)

// AcquireLease takes or renews a lease by compare-and-swap.
func (db *DB) AcquireLease(ctx context.Context, name, holder string, lasting time.Duration) (bool, error) {
	ctx, cancel := db.limit(ctx)
	defer cancel()
	n, err := db.queries().
		LeaseAcquire(ctx, dbsqlc.LeaseAcquireParams{Name: name, Holder: holder, Lasting: lasting.Microseconds()})
	return n > 0 && err == nil, db.interpretError("lease "+name, err)
}

// ReleaseLease returns a lease up.
func (db *DB) ReleaseLease(ctx context.Context, name, holder string) error {
	ctx, cancel := db.limit(ctx)
	defer cancel()
	err := db.queries().LeaseRelease(ctx, dbsqlc.LeaseReleaseParams{Name: name, Holder: holder})
	return db.interpretError("lease "+name, err)
}

// ClaimKey claims the key, or otherwise reads its row, in one transaction.
func (db *DB) ClaimKey(ctx context.Context, c storage.KeyClaim) (*storage.KeptAnswer, error) {
	var kept *storage.KeptAnswer
	err := db.transaction(ctx, func(ctx context.Context, q *dbsqlc.Queries) error {
		n, err := q.AnswerClaim(ctx, dbsqlc.AnswerClaimParams{
			Principal: c.Principal, Key: c.Key, Request: string(c.Request), Claimant: c.Claimant, Lasting: c.Lasting.Microseconds(),
		})
		if err != nil {
			return err
		}
		if n > 0 {
			return q.AnswerForget(ctx)
		}
		row, err := q.AnswerGet(ctx, dbsqlc.AnswerGetParams{Principal: c.Principal, Key: c.Key})
		if err != nil {
			return err
		}
		kept, err = catalog.KeptAnswer(c, row.Request,
			storage.KeptAnswer{Status: int(row.Status), Type: row.Type, Body: row.Body})
		return err
	})
	return kept, db.interpretError("idempotency key", err)
}

// RenewKey extends a claim.
func (db *DB) RenewKey(ctx context.Context, c storage.KeyClaim) error {
	ctx, cancel := db.limit(ctx)
	defer cancel()
	n, err := db.queries().
		AnswerRenew(ctx, dbsqlc.AnswerRenewParams{
			Principal: c.Principal, Key: c.Key, Claimant: c.Claimant, Lasting: c.Lasting.Microseconds(),
		})
	return db.interpretError("idempotency key", catalog.Claimed(n, err))
}

// SaveAnswer stores an answer and ends the claim.
func (db *DB) SaveAnswer(ctx context.Context, c storage.KeyClaim, answer storage.KeptAnswer) error {
	err := db.transaction(ctx, func(ctx context.Context, q *dbsqlc.Queries) error {
		n, err := q.AnswerSave(ctx, dbsqlc.AnswerSaveParams{
			Principal: c.Principal, Key: c.Key, Claimant: c.Claimant, Lasting: c.Lasting.Microseconds(),
			Status: int64(answer.Status), Type: answer.Type, Body: catalog.NotNull(answer.Body),
		})
		if err := catalog.Claimed(n, err); err != nil {
			return err
		}
		return deleteSurplus(ctx, q, c.Principal)
	})
	return db.interpretError("idempotency key", err)
}

// deleteSurplus deletes the answers of a principal that are too many.
func deleteSurplus(ctx context.Context, q *dbsqlc.Queries, principal string) error {
	rows, err := q.AnswerSizes(ctx, principal)
	if err != nil {
		return err
	}
	sizes := make([]catalog.AnswerSize, len(rows))
	for i, r := range rows {
		sizes[i] = catalog.AnswerSize{Key: r.Key, Bytes: r.Bytes}
	}
	for _, key := range catalog.Surplus(sizes) {
		if err := q.AnswerDelete(ctx, dbsqlc.AnswerDeleteParams{Principal: principal, Key: key}); err != nil {
			return err
		}
	}
	return nil
}

// FreeKey ends a claim.
func (db *DB) FreeKey(ctx context.Context, c storage.KeyClaim) error {
	ctx, cancel := db.limit(ctx)
	defer cancel()
	err := db.queries().AnswerFree(ctx, dbsqlc.AnswerFreeParams{Principal: c.Principal, Key: c.Key, Claimant: c.Claimant})
	return db.interpretError("idempotency key", err)
}
