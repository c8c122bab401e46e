package sqlite

import (
	"context"
	"fmt"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/sqlite/internal/dbsqlc"
)

// Begin records an intent. Its time is kept in UTC to the microsecond.
func (db *DB) Begin(ctx context.Context, i registry.Intent) error {
	err := db.write().IntentBegin(ctx, dbsqlc.IntentBeginParams{
		Environment: i.Environment, Model: i.Model, Source: i.From,
		Release: string(i.Release), Begun: i.Begun.UnixMicro(),
	})
	return db.interpretError(fmt.Sprintf("intent for %s in %s", i.Model, i.Environment), err)
}

// End forgets an intent.
func (db *DB) End(ctx context.Context, environment, model string, release registry.Digest) error {
	err := db.write().IntentEndFor(ctx, dbsqlc.IntentEndForParams{Environment: environment, Model: model, Release: string(release)})
	return db.interpretError(fmt.Sprintf("end the intent for %s in %s", model, environment), err)
}

// Pending lists intents by environment and model.
func (db *DB) Pending(ctx context.Context) ([]registry.Intent, error) {
	rows, err := db.read().IntentList(ctx)
	if err != nil {
		return nil, db.interpretError("intents", err)
	}
	var pending []registry.Intent
	for _, row := range rows {
		pending = append(pending, registry.Intent{
			Environment: row.Environment, Model: row.Model, From: row.Source,
			Release: registry.Digest(row.Release), Begun: fromMicros(row.Begun),
		})
	}
	return pending, nil
}
