package postgres

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"mlpromote.dev/mlpromote/registry/postgres/internal/dbsqlc"
)

const (
	attempts = 8
	// firstPause is the longest pause before the second attempt. It doubles with each attempt.
	firstPause = 5 * time.Millisecond
	// commitPatience limits the wait for the response to a commit, also if the caller's ctx has
	// ended, so that the outcome becomes known.
	commitPatience = 10 * time.Second
)

// transaction runs change in one transaction. Each statement sees what was committed before it.
// If the server aborts the transaction because of a conflict, transaction calls change again.
// Errors: *commitError.
func (db *DB) transaction(ctx context.Context, change func(context.Context, *dbsqlc.Queries) error) error {
	ctx, cancel := db.limit(ctx)
	defer cancel()
	pause := firstPause
	for attempt := 1; ; attempt++ {
		err := db.attempt(ctx, change)
		if !undone(err) || attempt == attempts {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(rand.N(pause)): //nolint:gosec // spreads retries; not a secret
		}
		pause *= 2
	}
}

// snapshot runs look on a snapshot of one instant.
func (db *DB) snapshot(ctx context.Context, look func(context.Context, *dbsqlc.Queries) error) error {
	ctx, cancel := db.limit(ctx)
	defer cancel()
	return pgx.BeginTxFunc(
		ctx,
		db.pool,
		pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly},
		func(tx pgx.Tx) error {
			return look(ctx, dbsqlc.New(tx))
		},
	)
}

func (db *DB) attempt(ctx context.Context, change func(context.Context, *dbsqlc.Queries) error) error {
	tx, err := db.pool.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.ReadCommitted, AccessMode: pgx.ReadWrite})
	if err != nil {
		return err
	}
	if err := change(ctx, dbsqlc.New(tx)); err != nil {
		// If this fails the connection is closed, which also rolls back.
		_ = tx.Rollback(ctx)
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), commitPatience)
	defer cancel()
	if err := tx.Commit(ctx); err != nil {
		var failure *pgconn.PgError
		if errors.Is(err, pgx.ErrTxCommitRollback) || errors.As(err, &failure) && failure.SeverityUnlocalized != fatal {
			return err // the server reports that it did not commit
		}
		return &commitError{err}
	}
	return nil
}

// undone reports whether the server aborted a transaction that can be retried.
func undone(err error) bool {
	var failure *pgconn.PgError
	return errors.As(err, &failure) && (failure.Code == serializationFailure || failure.Code == deadlockDetected)
}
