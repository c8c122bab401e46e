package sqlite

import (
	"context"

	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/internal/catalog"
	"mlpromote.dev/mlpromote/registry/sqlite/internal/dbsqlc"
)

// configurationKey is the key of the agreed configuration in [recall].
type configurationKey struct{}

// Agreed returns the agreed configuration. It sets unrecorded parts from first.
func (db *DB) Agreed(ctx context.Context, first history.Configuration) (history.Configuration, error) {
	agreed, err := recall(ctx, db.steady, configurationKey{}, func() (history.Configuration, error) {
		parts, err := tx{Queries: db.read()}.ConfigurationParts(ctx)
		return catalog.Configuration(parts), err
	})
	if err == nil && catalog.MissesParts(agreed, first) {
		err = db.transaction(ctx, func(q *dbsqlc.Queries) (err error) {
			agreed, err = catalog.Agree(ctx, tx{Queries: q}, first)
			return err
		})
	}
	return agreed, db.interpretError("agreed configuration", err)
}
