package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/internal/catalog"
	"mlpromote.dev/mlpromote/registry/postgres/internal/dbsqlc"
	"mlpromote.dev/mlpromote/registry/storage"
)

// Apply applies a change in one transaction. If the response to its commit is lost, it checks
// whether the change was made. Errors: CodeUnavailable, with a message that says that this is
// unknown, if it cannot check for some time.
func (db *DB) Apply(ctx context.Context, c storage.Change) (history.Event, error) {
	var outcome catalog.Outcome
	err := db.transaction(ctx, func(ctx context.Context, q *dbsqlc.Queries) (err error) {
		outcome, err = apply(ctx, q, c)
		return err
	})
	var unknown *commitError
	if errors.As(err, &unknown) {
		err = db.settle(ctx, outcome.Event, unknown)
	}
	if err != nil {
		return history.Event{}, db.interpretError(
			fmt.Sprintf("%s %s in %s", c.Event.Kind, c.Event.Model, c.Event.Environment), err)
	}
	return outcome.Event, nil
}

// apply holds the lock of the history from the beginning. No other transaction can move heads
// until the commit, so what it reads stays valid.
func apply(ctx context.Context, q *dbsqlc.Queries, c storage.Change) (catalog.Outcome, error) {
	if err := q.ChainLock(ctx); err != nil {
		return catalog.Outcome{}, err
	}
	outcome, err := catalog.Decide(ctx, catalog.Reader{Rows: tx{q}}, c)
	if err != nil {
		return catalog.Outcome{}, err
	}
	return outcome, outcome.Write(ctx, tx{q})
}

// settlePause is the interval between checks of a commit.
const settlePause = 100 * time.Millisecond

// settle finds out whether event was committed. The transaction held the lock of the history
// until it ended, so the holder of the lock sees its outcome.
func (db *DB) settle(ctx context.Context, event history.Event, unknown *commitError) error {
	ctx, cancel := db.limit(context.WithoutCancel(ctx))
	defer cancel()
	for {
		made, err := db.made(ctx, event)
		switch {
		case made:
			return nil
		case err == nil:
			return registry.ForClients(
				registry.Errorf(registry.CodeUnavailable,
					"database %s was lost at the commit; nothing has changed; try again: %w", db.name, unknown.err),
				"the database was lost at the commit; nothing has changed; try again",
			)
		}
		select {
		case <-ctx.Done():
			return unknown
		case <-time.After(settlePause):
		}
	}
}

// made reports whether event is in the history.
func (db *DB) made(ctx context.Context, event history.Event) (made bool, err error) {
	err = db.transaction(ctx, func(ctx context.Context, q *dbsqlc.Queries) error {
		if err := q.ChainLock(ctx); err != nil {
			return err
		}
		body, err := q.HistoryGet(ctx, event.Seq)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		there, err := catalog.DecodeEvent(body)
		made = there.Hash == event.Hash
		return err
	})
	return made, err
}
