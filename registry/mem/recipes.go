package mem

import (
	"context"
	"slices"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/internal/catalog"
	"mlpromote.dev/mlpromote/registry/storage"
)

var _ storage.Recipes = (*DB)(nil)

// Recipe returns the recipe of d.
func (db *DB) Recipe(ctx context.Context, d registry.Digest) (storage.Recipe, error) {
	if err := ctx.Err(); err != nil {
		return storage.Recipe{}, err
	}
	db.mu.RLock()
	defer db.mu.RUnlock()
	r, ok := db.recipes[d]
	if !ok {
		return storage.Recipe{}, registry.Errorf(registry.CodeNotFound, "recipe of %s: not found", d)
	}
	return r, nil
}

// RecipeDigests lists a page of the digests that have a recipe.
func (db *DB) RecipeDigests(ctx context.Context, after registry.Digest, limit int) ([]registry.Digest, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	db.mu.RLock()
	defer db.mu.RUnlock()
	var digests []registry.Digest
	for d := range db.recipes {
		if d > after {
			digests = append(digests, d)
		}
	}
	slices.Sort(digests)
	return digests[:min(limit, len(digests))], nil
}

// AddRecipe records a recipe.
func (db *DB) AddRecipe(ctx context.Context, r storage.Recipe) (bool, error) {
	if _, err := catalog.EncodePieces(r); err != nil {
		return false, err
	}
	if err := ctx.Err(); err != nil {
		return false, err
	}
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.isPart(r.Digest) {
		return false, nil
	}
	for _, d := range append(r.Parts(), r.Digest) {
		if db.hasRecipe(d) || db.marked[d].removal != "" {
			return false, nil
		}
	}
	r.Created = micros(db.now())
	db.recipes[r.Digest] = r
	return true, nil
}

// hasRecipe reports whether d has a recipe. The caller holds the lock.
func (db *DB) hasRecipe(d registry.Digest) bool {
	_, ok := db.recipes[d]
	return ok
}

// isPart reports whether a recipe needs d. The caller holds the lock.
func (db *DB) isPart(d registry.Digest) bool {
	for _, r := range db.recipes {
		if slices.Contains(r.Parts(), d) {
			return true
		}
	}
	return false
}
