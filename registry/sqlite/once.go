package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"mlpromote.dev/mlpromote/registry/internal/catalog"
	"mlpromote.dev/mlpromote/registry/sqlite/internal/dbsqlc"
	"mlpromote.dev/mlpromote/registry/storage"
)

var (
	_ storage.Leases      = (*DB)(nil)
	_ storage.Idempotency = (*DB)(nil)
)

// AcquireLease takes or renews a lease by compare-and-swap.
func (db *DB) AcquireLease(ctx context.Context, name, holder string, lasting time.Duration) (bool, error) {
	acquired, now := false, db.now()
	err := db.transaction(ctx, func(q *dbsqlc.Queries) error {
		have, err := q.LeaseGet(ctx, name)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		if err == nil && have.Holder != holder && have.Until > now.UnixMicro() {
			return nil
		}
		acquired = true
		return q.LeaseSet(ctx, dbsqlc.LeaseSetParams{Name: name, Holder: holder, Until: now.Add(lasting).UnixMicro()})
	})
	return acquired && err == nil, db.interpretError("lease "+name, err)
}

// ReleaseLease gives a lease up.
func (db *DB) ReleaseLease(ctx context.Context, name, holder string) error {
	err := db.write().LeaseRelease(ctx, dbsqlc.LeaseReleaseParams{Name: name, Holder: holder})
	return db.interpretError("lease "+name, err)
}

// ClaimKey reads the row of the key and claims it in one transaction.
func (db *DB) ClaimKey(ctx context.Context, c storage.KeyClaim) (*storage.KeptAnswer, error) {
	var kept *storage.KeptAnswer
	now := db.now()
	err := db.transaction(ctx, func(q *dbsqlc.Queries) error {
		row, err := q.AnswerGet(ctx, dbsqlc.AnswerGetParams{Principal: c.Principal, Key: c.Key})
		switch {
		case err != nil && !errors.Is(err, sql.ErrNoRows):
			return err
		case err == nil && row.Until > now.UnixMicro():
			kept, err = catalog.KeptAnswer(c, row.Request,
				storage.KeptAnswer{Status: int(row.Status), Type: row.Type, Body: row.Body})
			return err
		}
		err = q.AnswerClaim(ctx, dbsqlc.AnswerClaimParams{
			Principal: c.Principal, Key: c.Key, Request: string(c.Request), Claimant: c.Claimant, Until: now.Add(c.Lasting).UnixMicro(),
		})
		if err != nil {
			return err
		}
		return q.AnswerForget(ctx, now.UnixMicro())
	})
	return kept, db.interpretError("idempotency key", err)
}

// RenewKey extends a claim.
func (db *DB) RenewKey(ctx context.Context, c storage.KeyClaim) error {
	n, err := db.write().AnswerRenew(ctx, dbsqlc.AnswerRenewParams{
		Principal: c.Principal, Key: c.Key, Claimant: c.Claimant, Until: db.now().Add(c.Lasting).UnixMicro(),
	})
	return db.interpretError("idempotency key", catalog.Claimed(n, err))
}

// SaveAnswer stores an answer and ends the claim.
func (db *DB) SaveAnswer(ctx context.Context, c storage.KeyClaim, answer storage.KeptAnswer) error {
	err := db.transaction(ctx, func(q *dbsqlc.Queries) error {
		n, err := q.AnswerSave(ctx, dbsqlc.AnswerSaveParams{
			Principal: c.Principal, Key: c.Key, Claimant: c.Claimant, Until: db.now().Add(c.Lasting).UnixMicro(),
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
	err := db.write().AnswerFree(ctx, dbsqlc.AnswerFreeParams{Principal: c.Principal, Key: c.Key, Claimant: c.Claimant})
	return db.interpretError("idempotency key", err)
}
