package postgres

import (
	"context"
	_ "embed"
	"math"

	"github.com/jackc/pgx/v5"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/internal/catalog"
	"mlpromote.dev/mlpromote/registry/postgres/internal/dbsqlc"
	"mlpromote.dev/mlpromote/registry/storage"
)

//go:embed repositories.sql
var repositoryPage string

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

// ListRepositories lists repositories that have manifests.
func (db *DB) ListRepositories(ctx context.Context, prefix, after string, limit int) ([]string, error) {
	ctx, cancel := db.limit(ctx)
	defer cancel()
	first, beyond := catalog.RepositoryRange(prefix, after)
	rows, err := db.pool.Query(ctx, repositoryPage, first, beyond, limit)
	if err != nil {
		return nil, db.interpretError("repositories", err)
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	return names, db.interpretError("repositories", err)
}
