package sqlite

import (
	"context"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/internal/catalog"
	"mlpromote.dev/mlpromote/registry/sqlite/internal/dbsqlc"
	"mlpromote.dev/mlpromote/registry/storage"
)

// ModelPage lists the heads of a page of models.
func (db *DB) ModelPage(ctx context.Context, environment, after string, limit int) ([]history.Head, error) {
	var rows []dbsqlc.Head
	var err error
	if environment == "" {
		rows, err = db.read().ModelPage(ctx, dbsqlc.ModelPageParams{After: after, PageSize: int64(limit)})
	} else {
		rows, err = db.read().ModelPageOf(ctx, dbsqlc.ModelPageOfParams{
			Environment: environment, After: after, PageSize: int64(limit),
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
	rows, err := db.read().TagPage(ctx, dbsqlc.TagPageParams{
		Repository: repository, ArtifactType: artifactType, After: after, PageSize: int64(limit),
	})
	return catalog.Convert(rows, func(row dbsqlc.TagPageRow) storage.Tagged {
		return storage.Tagged{Tag: row.Tag, Digest: registry.Digest(row.Digest)}
	}), db.interpretError("tags of "+repository, err)
}
