package postgres

import (
	"context"
	"fmt"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/internal/catalog"
	"mlpromote.dev/mlpromote/registry/postgres/internal/dbsqlc"
)

// Begin records an intent.
func (db *DB) Begin(ctx context.Context, i history.Intent) error {
	ctx, cancel := db.limit(ctx)
	defer cancel()
	err := db.queries().IntentBegin(ctx, dbsqlc.IntentBeginParams{
		Environment: i.Environment, Model: i.Model, Source: i.From,
		Release: string(i.Release),
	})
	return db.interpretError(fmt.Sprintf("intent for %s in %s", i.Model, i.Environment), err)
}

// End deletes an intent.
func (db *DB) End(ctx context.Context, environment, model string, release registry.Digest) error {
	ctx, cancel := db.limit(ctx)
	defer cancel()
	err := db.queries().
		IntentEndFor(ctx, dbsqlc.IntentEndForParams{Environment: environment, Model: model, Release: string(release)})
	return db.interpretError(fmt.Sprintf("end the intent for %s in %s", model, environment), err)
}

// Abandon holds the lock of the history, so that the head does not move meanwhile.
func (db *DB) Abandon(ctx context.Context, i history.Intent) error {
	err := db.transaction(ctx, func(ctx context.Context, q *dbsqlc.Queries) error {
		if err := q.ChainLock(ctx); err != nil {
			return err
		}
		return catalog.Abandon(ctx, tx{q}, i, func() error {
			return q.IntentAbandon(ctx, dbsqlc.IntentAbandonParams{
				Environment: i.Environment, Model: i.Model, Release: string(i.Release), Begun: i.Begun,
			})
		})
	})
	return db.interpretError(fmt.Sprintf("abandon the intent for %s in %s", i.Model, i.Environment), err)
}

// Pending lists intents by environment and model.
func (db *DB) Pending(ctx context.Context) ([]history.Intent, error) {
	ctx, cancel := db.limit(ctx)
	defer cancel()
	rows, err := db.queries().IntentList(ctx)
	return catalog.Convert(rows, func(row dbsqlc.Intent) history.Intent {
		return history.Intent{
			Environment: row.Environment, Model: row.Model, From: row.Source,
			Release: registry.Digest(row.Release), Begun: row.Begun.UTC(),
		}
	}), db.interpretError("intents", err)
}
