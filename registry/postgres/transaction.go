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
	// firstPause is the longest pause before the second attempt; every further one may
	// be twice as long.
	firstPause = 5 * time.Millisecond
	// commitPatience bounds the wait for the answer to a commit, also where the caller
	// has gone: he must not leave behind what nobody knows the outcome of.
	commitPatience = 10 * time.Second
)

// commitError says that the answer to a commit was lost.
type commitError struct{ err error }

func (e *commitError) Error() string {
	return "the answer to the commit was lost, so that the change may have been made or not: " + e.err.Error()
}

func (e *commitError) Unwrap() error { return e.err }

// transaction makes what change does one transaction. Each statement sees what was
// committed before it. change is called again where the server undid it so that another
// transaction could go on. Errors: *commitError.
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
		case <-time.After(rand.N(pause)): //nolint:gosec // it spreads attempts and guards nothing
		}
		pause *= 2
	}
}

// snapshot makes what look reads all of one instant.
func (db *DB) snapshot(ctx context.Context, look func(context.Context, *dbsqlc.Queries) error) error {
	ctx, cancel := db.limit(ctx)
	defer cancel()
	return pgx.BeginTxFunc(ctx, db.pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		return look(ctx, dbsqlc.New(tx))
	})
}

func (db *DB) attempt(ctx context.Context, change func(context.Context, *dbsqlc.Queries) error) error {
	tx, err := db.pool.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.ReadCommitted, AccessMode: pgx.ReadWrite})
	if err != nil {
		return err
	}
	if err := change(ctx, dbsqlc.New(tx)); err != nil {
		// The connection is closed if this fails, and that undoes the change too.
		_ = tx.Rollback(ctx)
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), commitPatience)
	defer cancel()
	if err := tx.Commit(ctx); err != nil {
		var failure *pgconn.PgError
		if errors.Is(err, pgx.ErrTxCommitRollback) || errors.As(err, &failure) && failure.SeverityUnlocalized != fatal {
			return err // the server says that it did not commit
		}
		return &commitError{err}
	}
	return nil
}

// undone reports whether the server took a transaction back that can be made again.
func undone(err error) bool {
	var failure *pgconn.PgError
	return errors.As(err, &failure) && (failure.Code == serializationFailure || failure.Code == deadlockDetected)
}
