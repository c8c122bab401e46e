package postgres

import (
	"context"

	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/internal/catalog"
	"mlpromote.dev/mlpromote/registry/postgres/internal/dbsqlc"
)

// Agreed returns the agreed configuration. It sets unrecorded parts from first.
func (db *DB) Agreed(ctx context.Context, first history.Configuration) (history.Configuration, error) {
	limited, cancel := db.limit(ctx)
	defer cancel()
	parts, err := tx{db.queries()}.ConfigurationParts(limited)
	agreed := catalog.Configuration(parts)
	if err == nil && catalog.MissesParts(agreed, first) {
		err = db.transaction(ctx, func(ctx context.Context, q *dbsqlc.Queries) (err error) {
			if err := q.ChainLock(ctx); err != nil { // like the changes that replace it
				return err
			}
			agreed, err = catalog.Agree(ctx, tx{q}, first)
			return err
		})
	}
	return agreed, db.interpretError("agreed configuration", err)
}
