package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/internal/catalog"
	"mlpromote.dev/mlpromote/registry/sqlite/internal/dbsqlc"
)

// Recorded returns the first event of a model that names each bundle.
func (db *DB) Recorded(
	ctx context.Context,
	model string,
	bundles []registry.Digest,
) (map[registry.Digest]history.Record, error) {
	q := db.read()
	records := make(map[registry.Digest]history.Record, len(bundles))
	for _, d := range bundles {
		row, err := q.RecordedGet(ctx, dbsqlc.RecordedGetParams{Model: model, Bundle: string(d)})
		if errors.Is(err, sql.ErrNoRows) {
			continue
		}
		if err != nil {
			return nil, db.interpretError(fmt.Sprintf("history of %s: evidence %s", model, d), err)
		}
		if records[d], err = catalog.Recorded(row.Seq, row.Time); err != nil {
			return nil, err
		}
	}
	return records, nil
}

// Reindex rebuilds the index of a model's evidence.
func (db *DB) Reindex(ctx context.Context, model string) error {
	err := db.transaction(ctx, func(q *dbsqlc.Queries) error {
		if err := q.RecordedForget(ctx, model); err != nil {
			return err
		}
		return q.RecordedRestore(ctx, model)
	})
	return db.interpretError("list the evidence about "+model, err)
}
