package postgres

import (
	"context"
	"fmt"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/internal/catalog"
	"mlpromote.dev/mlpromote/registry/postgres/internal/dbsqlc"
)

// Head returns the head of a model in an environment.
func (db *DB) Head(ctx context.Context, environment, model string) (history.Head, error) {
	ctx, cancel := db.limit(ctx)
	defer cancel()
	row, err := db.queries().HeadGet(ctx, dbsqlc.HeadGetParams{Environment: environment, Model: model})
	if err != nil {
		return history.Head{}, db.interpretError(fmt.Sprintf("head of %s in %s", model, environment), err)
	}
	return head(row), nil
}

// Heads lists heads by environment and model.
func (db *DB) Heads(ctx context.Context, environment, model string) ([]history.Head, error) {
	ctx, cancel := db.limit(ctx)
	defer cancel()
	rows, err := db.filtered().HeadList(ctx, dbsqlc.HeadListParams{Environment: environment, Model: model})
	return catalog.Convert(rows, head), db.interpretError("heads", err)
}

func head(row dbsqlc.Head) history.Head {
	return history.Head{
		Environment: row.Environment, Model: row.Model,
		Release: registry.Digest(row.Release), Version: row.Version,
		Since: row.Since.UTC(), Hold: row.Hold,
	}
}
