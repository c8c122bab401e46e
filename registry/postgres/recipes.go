package postgres

import (
	"context"
	"math"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/internal/catalog"
	"mlpromote.dev/mlpromote/registry/postgres/internal/dbsqlc"
	"mlpromote.dev/mlpromote/registry/storage"
)

var _ storage.Recipes = (*DB)(nil)

// Recipe returns the recipe of d.
func (db *DB) Recipe(ctx context.Context, d registry.Digest) (storage.Recipe, error) {
	ctx, cancel := db.limit(ctx)
	defer cancel()
	row, err := db.queries().RecipeGet(ctx, string(d))
	if err != nil {
		return storage.Recipe{}, db.interpretError("recipe of "+string(d), err)
	}
	return catalog.DecodeRecipe(row.Digest, row.Size, row.Created, row.Pieces)
}

// RecipeDigests lists a page of the digests that have a recipe.
func (db *DB) RecipeDigests(ctx context.Context, after registry.Digest, limit int) ([]registry.Digest, error) {
	ctx, cancel := db.limit(ctx)
	defer cancel()
	rows, err := db.queries().RecipePage(ctx, dbsqlc.RecipePageParams{After: string(after), PageSize: int32(min(limit, math.MaxInt32))})
	return catalog.Digests(rows), db.interpretError("recipes", err)
}

// AddRecipe first locks all names, as BeginRemoval does: of the two, the second sees the first.
func (db *DB) AddRecipe(ctx context.Context, r storage.Recipe) (added bool, err error) {
	err = db.transaction(ctx, func(ctx context.Context, q *dbsqlc.Queries) error {
		added = false
		if err := q.CollectionLock(ctx); err != nil {
			return err
		}
		if refused, err := q.RecipeRefused(ctx, dbsqlc.RecipeRefusedParams{Digest: string(r.Digest), Parts: texts(r.Parts())}); err != nil || refused {
			return err
		}
		added = true
		return addRecipe(ctx, q, r)
	})
	return added && err == nil, db.interpretError("recipe of "+string(r.Digest), err)
}

func addRecipe(ctx context.Context, q *dbsqlc.Queries, r storage.Recipe) error {
	pieces, err := catalog.EncodePieces(r)
	if err != nil {
		return err
	}
	if err := q.RecipeAdd(ctx, dbsqlc.RecipeAddParams{Digest: string(r.Digest), Size: r.Size, Pieces: pieces}); err != nil {
		return err
	}
	return q.RecipePartsAdd(ctx, dbsqlc.RecipePartsAddParams{Digest: string(r.Digest), Parts: texts(r.Parts())})
}

func deleteRecipes(ctx context.Context, q *dbsqlc.Queries, digests []string) error {
	if err := q.RecipePartsDelete(ctx, digests); err != nil {
		return err
	}
	return q.RecipeDelete(ctx, digests)
}
