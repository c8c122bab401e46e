package sqlite

import (
	"context"
	"fmt"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/internal/catalog"
	"mlpromote.dev/mlpromote/registry/sqlite/internal/dbsqlc"
)

// Begin records an intent.
func (db *DB) Begin(ctx context.Context, i history.Intent) error {
	err := db.write().IntentBegin(ctx, dbsqlc.IntentBeginParams{
		Environment: i.Environment, Model: i.Model, Source: i.From,
		Release: string(i.Release), Begun: db.now().UnixMicro(),
	})
	return db.interpretError(fmt.Sprintf("intent for %s in %s", i.Model, i.Environment), err)
}

// End deletes an intent.
func (db *DB) End(ctx context.Context, environment, model string, release registry.Digest) error {
	err := db.write().
		IntentEndFor(ctx, dbsqlc.IntentEndForParams{Environment: environment, Model: model, Release: string(release)})
	return db.interpretError(fmt.Sprintf("end the intent for %s in %s", model, environment), err)
}

// Abandon holds the write lock of the database, so that the head does not move meanwhile.
func (db *DB) Abandon(ctx context.Context, i history.Intent) error {
	err := db.transaction(ctx, func(q *dbsqlc.Queries) error {
		return catalog.Abandon(ctx, tx{Queries: q}, i, func() error {
			return q.IntentAbandon(ctx, dbsqlc.IntentAbandonParams{
				Environment: i.Environment, Model: i.Model, Release: string(i.Release), Begun: i.Begun.UnixMicro(),
			})
		})
	})
	return db.interpretError(fmt.Sprintf("abandon the intent for %s in %s", i.Model, i.Environment), err)
}

// Pending lists intents by environment and model.
func (db *DB) Pending(ctx context.Context) ([]history.Intent, error) {
	rows, err := db.read().IntentList(ctx)
	return catalog.Convert(rows, func(row dbsqlc.Intent) history.Intent {
		return history.Intent{
			Environment: row.Environment, Model: row.Model, From: row.Source,
			Release: registry.Digest(row.Release), Begun: fromMicros(row.Begun),
		}
	}), db.interpretError("intents", err)
}
