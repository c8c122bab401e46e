package sqlite

import (
	"context"
	_ "embed"
	"errors"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/internal/catalog"
	"mlpromote.dev/mlpromote/registry/sqlite/internal/dbsqlc"
	"mlpromote.dev/mlpromote/registry/storage"
)

//go:embed repositories.sql
var repositoryPage string

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

// ListRepositories lists repositories that have manifests.
func (db *DB) ListRepositories(ctx context.Context, prefix, after string, limit int) (names []string, err error) {
	first, beyond := catalog.RepositoryRange(prefix, after)
	rows, err := db.reader.QueryContext(ctx, repositoryPage, first, beyond, limit)
	if err != nil {
		return nil, db.interpretError("repositories", err)
	}
	defer func() { err = db.interpretError("repositories", errors.Join(err, rows.Close())) }()
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return nil, err
		}
		names = append(names, name)
	}
	return names, rows.Err()
}
