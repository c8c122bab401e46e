package composed

import (
	"context"
	"io"
	"iter"
	"maps"
	"slices"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/storage"
)

// Lookup finds recipes. It is the reading half of [storage.Recipes].
type Lookup interface {
	Recipe(ctx context.Context, d registry.Digest) (storage.Recipe, error)
	RecipeDigests(ctx context.Context, after registry.Digest, limit int) ([]registry.Digest, error)
}

// Blobs wraps stored bytes, so that content with a recipe can be read too. Content that is stored itself is read from
// there. Put stores nothing for content that can be composed, and looks for a recipe from a size of least bytes on. Delete
// refuses content with a recipe: only a collector knows that nobody needs it.
func Blobs(stored storage.Blobs, recipes Lookup, least int64) storage.Blobs {
	b := blobs{stored, recipes, least}
	if direct, ok := stored.(redirector); ok {
		return redirecting{b, direct}
	}
	return b
}

// Repairable is [Blobs] of bytes that can be replaced. Replace stores own bytes.
func Repairable(stored storage.RepairableBlobs, recipes Lookup, least int64) storage.RepairableBlobs {
	return repairable{Blobs(stored, recipes, least), stored}
}

type repairable struct {
	storage.Blobs
	stored storage.RepairableBlobs
}

func (r repairable) Replace(ctx context.Context, d registry.Digest, size int64, content io.Reader) error {
	return r.stored.Replace(ctx, d, size, content)
}

// Copy reads all recipes, for use after their catalog is closed.
func Copy(ctx context.Context, recipes Lookup) (Lookup, error) {
	all := make(copied)
	for d, err := range Digests(ctx, recipes) {
		if err != nil {
			return nil, err
		}
		recipe, err := recipes.Recipe(ctx, d)
		if err != nil {
			return nil, err
		}
		all[d] = recipe
	}
	return all, nil
}

// copied is recipes in memory.
type copied map[registry.Digest]storage.Recipe

func (c copied) Recipe(_ context.Context, d registry.Digest) (storage.Recipe, error) {
	recipe, ok := c[d]
	if !ok {
		return storage.Recipe{}, registry.Errorf(registry.CodeNotFound, "recipe of %s: not found", d)
	}
	return recipe, nil
}

func (c copied) RecipeDigests(_ context.Context, after registry.Digest, limit int) ([]registry.Digest, error) {
	digests := slices.DeleteFunc(slices.Sorted(maps.Keys(c)), func(d registry.Digest) bool { return d <= after })
	return digests[:min(limit, len(digests))], nil
}

type blobs struct {
	storage.Blobs
	recipes Lookup
	least   int64
}

// Open returns stored bytes, or composes the content. Errors: CodeNotFound also if a part is missing or has another
// size, so that clients push the content again.
func (b blobs) Open(ctx context.Context, d registry.Digest) (storage.Blob, int64, error) {
	blob, size, err := b.Blobs.Open(ctx, d)
	if !registry.HasCode(err, registry.CodeNotFound) {
		return blob, size, err
	}
	recipe, failed := b.recipes.Recipe(ctx, d)
	if registry.HasCode(failed, registry.CodeNotFound) {
		return nil, 0, err
	}
	if failed != nil {
		return nil, 0, failed
	}
	composed, err := Open(ctx, b.Blobs, recipe)
	if err != nil {
		return nil, 0, err
	}
	return composed, recipe.Size, nil
}

func (b blobs) Put(ctx context.Context, d registry.Digest, size int64, r io.Reader) error {
	if size < b.least {
		return b.Blobs.Put(ctx, d, size, r)
	}
	recipe, err := b.recipe(ctx, d)
	if err != nil {
		return err
	}
	if recipe != nil {
		there, have, err := b.Open(ctx, d)
		if err == nil {
			err = there.Close()
		}
		if _, ok := there.(*Blob); ok && have == size && err == nil {
			return nil
		}
		if err != nil && !registry.HasCode(err, registry.CodeNotFound) {
			return err
		}
	}
	return b.Blobs.Put(ctx, d, size, r)
}

func (b blobs) Delete(ctx context.Context, d registry.Digest) error {
	recipe, err := b.recipe(ctx, d)
	if err == nil && recipe != nil {
		err = registry.Errorf(registry.CodeConflict, "blob %s has a recipe: garbage collection deletes it when no repository holds it", d)
	}
	if err != nil {
		return err
	}
	return b.Blobs.Delete(ctx, d)
}

// recipe returns the recipe of d, or nil. Malformed digests have none.
func (b blobs) recipe(ctx context.Context, d registry.Digest) (*storage.Recipe, error) {
	if registry.ValidDigest(d) != nil {
		return nil, nil //nolint:nilnil,nilerr // see above
	}
	recipe, err := b.recipes.Recipe(ctx, d)
	if registry.HasCode(err, registry.CodeNotFound) {
		return nil, nil //nolint:nilnil // see above
	}
	return &recipe, err
}

// Digests lists each digest once. It knows the recipes of the moment at which it begins.
func (b blobs) Digests(ctx context.Context) iter.Seq2[registry.Digest, error] {
	return func(yield func(registry.Digest, error) bool) {
		left := make(map[registry.Digest]bool)
		for d, err := range Digests(ctx, b.recipes) {
			if err != nil {
				yield("", err)
				return
			}
			left[d] = true
		}
		for d, err := range b.Blobs.Digests(ctx) {
			if !yield(d, err) || err != nil {
				return
			}
			delete(left, d)
		}
		for d := range left {
			if !yield(d, nil) {
				return
			}
		}
	}
}

// page is how many digests are listed at a time.
const page = 500

// Digests lists all digests that have a recipe, in byte order.
func Digests(ctx context.Context, recipes Lookup) iter.Seq2[registry.Digest, error] {
	return func(yield func(registry.Digest, error) bool) {
		for after := registry.Digest(""); ; {
			digests, err := recipes.RecipeDigests(ctx, after, page)
			if err != nil {
				yield("", err)
				return
			}
			for _, d := range digests {
				if !yield(d, nil) {
					return
				}
				after = d
			}
			if len(digests) < page {
				return
			}
		}
	}
}

// redirector is Blobs with URLs from which clients can pull.
type redirector interface {
	Redirect(ctx context.Context, d registry.Digest, expiry time.Duration) (url string, ok bool, err error)
}

type redirecting struct {
	blobs
	direct redirector
}

// Redirect has no URL for content with a recipe, even while its own bytes are stored: they vanish before the URL expires.
func (r redirecting) Redirect(ctx context.Context, d registry.Digest, expiry time.Duration) (url string, ok bool, err error) {
	recipe, err := r.recipe(ctx, d)
	if err != nil || recipe != nil {
		return "", false, err
	}
	return r.direct.Redirect(ctx, d, expiry)
}
