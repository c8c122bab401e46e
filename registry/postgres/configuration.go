package postgres

import (
	"context"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/postgres/internal/dbsqlc"
)

// Agreed returns the agreed configuration. It sets unrecorded parts from first.
func (db *DB) Agreed(ctx context.Context, first registry.Configuration) (registry.Configuration, error) {
	limited, cancel := db.limit(ctx)
	defer cancel()
	agreed, err := configuration(limited, db.queries())
	if err == nil && agreed.Over(first) != agreed {
		err = db.transaction(ctx, func(ctx context.Context, q *dbsqlc.Queries) (err error) {
			if err := q.ChainLock(ctx); err != nil { // like the changes that replace it
				return err
			}
			if agreed, err = configuration(ctx, q); err == nil {
				agreed = agreed.Over(first)
				err = setConfiguration(ctx, q, agreed)
			}
			return err
		})
	}
	return agreed, db.interpretError("agreed configuration", err)
}

func configuration(ctx context.Context, q *dbsqlc.Queries) (registry.Configuration, error) {
	rows, err := q.ConfigurationList(ctx)
	var c registry.Configuration
	for _, row := range rows {
		c.Set(row.Part, registry.Digest(row.Digest))
	}
	return c, err
}

// setConfiguration replaces the parts that are set in c.
func setConfiguration(ctx context.Context, q *dbsqlc.Queries, c registry.Configuration) error {
	for _, p := range c.Parts() {
		if p.Digest == "" {
			continue
		}
		if err := q.ConfigurationSet(ctx, dbsqlc.ConfigurationSetParams{Part: p.Name, Digest: string(p.Digest)}); err != nil {
			return err
		}
	}
	return nil
}
