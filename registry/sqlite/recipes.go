package sqlite

import (
	"context"
	"database/sql"
	"errors"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/internal/catalog"
	"mlpromote.dev/mlpromote/registry/sqlite/internal/dbsqlc"
	"mlpromote.dev/mlpromote/registry/storage"
)

var _ storage.Recipes = (*DB)(nil)

// Recipe returns the recipe of d.
func (db *DB) Recipe(ctx context.Context, d registry.Digest) (storage.Recipe, error) {
	row, err := db.read().RecipeGet(ctx, string(d))
	if err != nil {
		return storage.Recipe{}, db.interpretError("recipe of "+string(d), err)
	}
	return catalog.DecodeRecipe(row.Digest, row.Size, fromMicros(row.Created), row.Pieces)
}

// RecipeDigests lists a page of the digests that have a recipe.
func (db *DB) RecipeDigests(ctx context.Context, after registry.Digest, limit int) ([]registry.Digest, error) {
	rows, err := db.read().RecipePage(ctx, dbsqlc.RecipePageParams{After: string(after), PageSize: int64(limit)})
	return catalog.Digests(rows), db.interpretError("recipes", err)
}

// AddRecipe holds the write lock of the database, as BeginRemoval does.
func (db *DB) AddRecipe(ctx context.Context, r storage.Recipe) (added bool, err error) {
	pieces, err := catalog.EncodePieces(r)
	if err != nil {
		return false, err
	}
	err = db.transaction(ctx, func(q *dbsqlc.Queries) error {
		added = false
		if isPart, err := q.RecipeIsPart(ctx, string(r.Digest)); err != nil || isPart {
			return err
		}
		for _, d := range append(r.Parts(), r.Digest) {
			if refused, err := recipeRefused(ctx, q, d); err != nil || refused {
				return err
			}
		}
		added = true
		err := q.RecipeAdd(ctx, dbsqlc.RecipeAddParams{Digest: string(r.Digest), Size: r.Size, Created: db.now().UnixMicro(), Pieces: pieces})
		for _, part := range r.Parts() {
			if err == nil {
				err = q.RecipePartAdd(ctx, dbsqlc.RecipePartAddParams{Part: string(part), Digest: string(r.Digest)})
			}
		}
		return err
	})
	return added && err == nil, db.interpretError("recipe of "+string(r.Digest), err)
}

// recipeRefused reports whether a digest has a recipe or a removal.
func recipeRefused(ctx context.Context, q *dbsqlc.Queries, d registry.Digest) (bool, error) {
	if has, err := q.RecipeHas(ctx, string(d)); err != nil || has {
		return has, err
	}
	row, err := q.CondemnedGet(ctx, string(d))
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return row.Removal != "", err
}

func deleteRecipe(ctx context.Context, q *dbsqlc.Queries, d registry.Digest) error {
	if err := q.RecipePartsDelete(ctx, string(d)); err != nil {
		return err
	}
	return q.RecipeDelete(ctx, string(d))
}
