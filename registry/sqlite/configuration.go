package sqlite

import (
	"context"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/sqlite/internal/dbsqlc"
)

// configurationKey is the key of the agreed configuration in [recall].
type configurationKey struct{}

// Agreed returns the agreed configuration. It sets unrecorded parts from first.
func (db *DB) Agreed(ctx context.Context, first registry.Configuration) (registry.Configuration, error) {
	agreed, err := recall(ctx, db.steady, configurationKey{}, func() (registry.Configuration, error) {
		return configuration(ctx, db.read())
	})
	if err == nil && agreed.Over(first) != agreed {
		err = db.transaction(ctx, func(q *dbsqlc.Queries) (err error) {
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
