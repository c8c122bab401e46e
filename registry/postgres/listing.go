package postgres

import (
	"context"
	"math"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/internal/catalog"
	"mlpromote.dev/mlpromote/registry/postgres/internal/dbsqlc"
	"mlpromote.dev/mlpromote/registry/storage"
)

// ModelPage lists the heads of a page of models.
func (db *DB) ModelPage(ctx context.Context, environment, after string, limit int) ([]history.Head, error) {
	ctx, cancel := db.limit(ctx)
	defer cancel()
	var rows []dbsqlc.Head
	var err error
	if environment == "" {
		rows, err = db.queries().ModelPage(ctx, dbsqlc.ModelPageParams{After: after, PageSize: pageLimit(limit)})
	} else {
		rows, err = db.queries().ModelPageOf(ctx, dbsqlc.ModelPageOfParams{
			Environment: environment, After: after, PageSize: pageLimit(limit),
		})
	}
	return catalog.Convert(rows, head), db.interpretError("models", err)
}

// TagPage lists tags of manifests of a type.
func (db *DB) TagPage(
	ctx context.Context,
	repository, artifactType, after string,
	limit int,
) ([]storage.Tagged, error) {
	ctx, cancel := db.limit(ctx)
	defer cancel()
	rows, err := db.queries().TagPage(ctx, dbsqlc.TagPageParams{
		Repository: repository, ArtifactType: artifactType, After: after, PageSize: pageLimit(limit),
	})
	return catalog.Convert(rows, func(row dbsqlc.TagPageRow) storage.Tagged {
		return storage.Tagged{Tag: row.Tag, Digest: registry.Digest(row.Digest)}
	}), db.interpretError("tags of "+repository, err)
}

// pageLimit returns the page size as the type of a query parameter.
func pageLimit(n int) int32 { return int32(min(n, math.MaxInt32)) }
