package sqlite

import (
	"context"
	"fmt"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/internal/catalog"
	"mlpromote.dev/mlpromote/registry/sqlite/internal/dbsqlc"
)

// Head returns the head of a model in an environment.
func (db *DB) Head(ctx context.Context, environment, model string) (history.Head, error) {
	key := dbsqlc.HeadGetParams{Environment: environment, Model: model}
	row, err := recall(ctx, db.steady, key, func() (dbsqlc.Head, error) { return db.read().HeadGet(ctx, key) })
	if err != nil {
		return history.Head{}, db.interpretError(fmt.Sprintf("head of %s in %s", model, environment), err)
	}
	return head(row), nil
}

// Heads lists heads by environment and model.
func (db *DB) Heads(ctx context.Context, environment, model string) ([]history.Head, error) {
	rows, err := db.read().HeadList(ctx, dbsqlc.HeadListParams{Environment: environment, Model: model})
	return catalog.Convert(rows, head), db.interpretError("heads", err)
}

func head(row dbsqlc.Head) history.Head {
	return history.Head{
		Environment: row.Environment, Model: row.Model,
		Release: registry.Digest(row.Release), Version: row.Version,
		Since: fromMicros(row.Since), Hold: row.Hold,
	}
}

// fromMicros converts the value of a column to a time.
func fromMicros(micros int64) time.Time { return time.UnixMicro(micros).UTC() }

// orZero converts the value of a column to a time; 0 is the zero time.
func orZero(micros int64) time.Time {
	if micros == 0 {
		return time.Time{}
	}
	return fromMicros(micros)
}
