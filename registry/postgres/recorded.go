package postgres

import (
	"context"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/internal/catalog"
	"mlpromote.dev/mlpromote/registry/postgres/internal/dbsqlc"
)

// Recorded returns the first event of a model that names each bundle.
func (db *DB) Recorded(
	ctx context.Context,
	model string,
	bundles []registry.Digest,
) (map[registry.Digest]history.Record, error) {
	ctx, cancel := db.limit(ctx)
	defer cancel()
	rows, err := db.queries().RecordedList(ctx, dbsqlc.RecordedListParams{Model: model, Bundles: texts(bundles)})
	if err != nil {
		return nil, db.interpretError("history of evidence about "+model, err)
	}
	records := make(map[registry.Digest]history.Record, len(rows))
	for _, row := range rows {
		if records[registry.Digest(row.Bundle)], err = catalog.Recorded(row.Seq, row.Time); err != nil {
			return nil, err
		}
	}
	return records, nil
}

// Reindex rebuilds the index of a model's evidence. It holds the lock of the history, so that
// no event is added meanwhile.
func (db *DB) Reindex(ctx context.Context, model string) error {
	err := db.transaction(ctx, func(ctx context.Context, q *dbsqlc.Queries) error {
		if err := q.ChainLock(ctx); err != nil {
			return err
		}
		if err := q.RecordedForget(ctx, model); err != nil {
			return err
		}
		return q.RecordedRestore(ctx, model)
	})
	return db.interpretError("list the evidence about "+model, err)
}
