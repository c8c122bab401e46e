package composed

import (
	"context"
	"errors"
	"io"
	"iter"
	"time"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/imageform"
	"mlpromote.dev/mlpromote/registry/internal/lru"
	"mlpromote.dev/mlpromote/registry/oci"
	"mlpromote.dev/mlpromote/registry/storage"
)

const (
	// Least is the size from which layers are composed. Smaller ones are not worth a recipe.
	Least = 64 << 20
	// maxParts limits the files of an engine whose layer is composed, because each is opened for every pull.
	maxParts = 32
	// maxLiteral limits the literal bytes of a recipe, which are in the catalog.
	maxLiteral = 256 << 10
	// maxDocument is the largest manifest that is read.
	maxDocument = 4 << 20
	// neverBytes limits the memory for what is not looked at again.
	neverBytes = 1 << 20
)

// Composer finds the layers of image forms that can be composed. Create one with [NewComposer].
type Composer struct {
	manifests storage.Manifests
	stored    storage.Blobs
	recipes   storage.Recipes
	least     int64
	never     *lru.Cache[registry.Digest, struct{}] // images with a small layer, and layers whose composition had another digest
}

// NewComposer returns a composer for layers of at least a size. stored has bytes as they are stored, without [Blobs].
func NewComposer(manifests storage.Manifests, stored storage.Blobs, recipes storage.Recipes, least int64) *Composer {
	return &Composer{manifests, stored, recipes, least, lru.New[registry.Digest, struct{}](neverBytes)}
}

// Surplus records recipes of layers that can be composed, and yields the layers with a recipe from before a time of
// the catalog's clock that are also stored themselves. The zero time means now. It yields a layer only after it has read all
// of the composition and compared it with the digest. So the caller may remove the layer's own bytes
// ([storage.RemovalRequest.Own]) as long as no other collector works. It trusts no
// manifest: manifests only tell where to look. An error of the ports ends the sequence. Layers with missing, damaged or unreadable parts are skipped.
func (c *Composer) Surplus(ctx context.Context, before time.Time) iter.Seq2[registry.Digest, error] {
	return func(yield func(registry.Digest, error) bool) {
		images, err := c.images(ctx)
		if err != nil {
			yield("", err)
			return
		}
		for _, image := range images {
			layer, due, err := c.look(ctx, image, before)
			if skippable(err) {
				continue
			}
			if (due || err != nil) && !yield(layer, err) || err != nil {
				return
			}
		}
	}
}

// skippable reports whether a layer cannot be composed for a reason that lies in content.
func skippable(err error) bool {
	for _, code := range []registry.Code{registry.CodeNotFound, registry.CodeDigest, registry.CodeInvalid, registry.CodeTrust} {
		if registry.HasCode(err, code) {
			return true
		}
	}
	return false
}

// damaged makes content that cannot be read, for instance from a broken disk, damage of that content: others are still looked at.
// Errors of a storage that does not answer, and those that have a meaning for a layer, stay.
func damaged(ctx context.Context, d registry.Digest, err error) error {
	if err == nil || ctx.Err() != nil || registry.CodeOf(err) != registry.CodeInternal {
		return err
	}
	return registry.Errorf(registry.CodeDigest, "%s cannot be read: %w", d, err)
}

// images lists the manifests that name the engine that they are an image of. It ends the listing before the first one is read, which
// can take long.
func (c *Composer) images(ctx context.Context) ([]registry.Digest, error) {
	var images []registry.Digest
	seen := make(map[registry.Digest]bool)
	for m, err := range c.manifests.AllManifests(ctx) {
		if err != nil {
			return nil, err
		}
		d := m.Manifest.Digest
		if m.Manifest.Derived.Annotations[imageform.KeyEngine] != "" && !seen[d] {
			seen[d] = true
			images = append(images, d)
		}
	}
	return images, nil
}

// look records the recipe of an image's layer, if it can, and reports whether the layer's own bytes are surplus.
func (c *Composer) look(ctx context.Context, image registry.Digest, before time.Time) (layer registry.Digest, due bool, err error) {
	if _, never := c.never.Get(image); never {
		return "", false, nil
	}
	part, err := c.part(ctx, image, artifact.PartImage)
	if err != nil {
		return "", false, err
	}
	if len(part.Files) != 1 || part.Files[0].Size < c.least {
		c.never.Put(image, struct{}{}, 2*len(image))
		return "", false, nil
	}
	layer = part.Files[0].Digest
	if _, never := c.never.Get(layer); never {
		return layer, false, nil
	}
	own, err := c.isStored(ctx, layer)
	if err != nil {
		return layer, false, err
	}
	recipe, err := c.recipes.Recipe(ctx, layer)
	if registry.HasCode(err, registry.CodeNotFound) {
		due, err = c.learn(ctx, part, own && before.IsZero())
		return layer, due, err
	}
	if err != nil || !own || !before.IsZero() && !recipe.Created.Before(before) {
		return layer, false, err
	}
	err = c.compare(ctx, recipe)
	return layer, err == nil, err
}

// learn records the recipe of a layer that has none, and returns due if it did.
func (c *Composer) learn(ctx context.Context, image storage.FetchedPart, due bool) (bool, error) {
	recipe, err := c.recipeOf(ctx, image)
	if err != nil {
		return false, err
	}
	if err := c.compare(ctx, recipe); err != nil {
		return false, err
	}
	added, err := c.recipes.AddRecipe(ctx, recipe)
	if err != nil || !added {
		return false, err
	}
	// From now on no removal of a part can begin, and none was recorded. What was compared above could have been removed
	// before, so its existence is checked once more.
	composed, err := Open(ctx, c.stored, recipe)
	if err == nil {
		err = composed.Close()
	}
	return due && err == nil, err
}

// recipeOf makes the recipe of the layer of an image, by the files of its engine.
func (c *Composer) recipeOf(ctx context.Context, image storage.FetchedPart) (storage.Recipe, error) {
	engine, err := c.part(ctx, image.ImageOf, artifact.PartEngine)
	if err != nil {
		return storage.Recipe{}, err
	}
	layer := image.Files[0]
	recipe := storage.Recipe{Digest: layer.Digest, Size: layer.Size}
	form, err := imageform.NewLayer(engine.Files)
	if err != nil {
		return recipe, err
	}
	if len(engine.Files) > maxParts || form.Size() != layer.Size {
		return recipe, registry.Errorf(registry.CodeInvalid, "layer %s of %d bytes is not composed of %d files: want %d bytes, and at most %d files",
			layer.Digest, layer.Size, len(engine.Files), form.Size(), maxParts)
	}
	pieces, err := form.Pieces(maxLiteral)
	if err != nil {
		return recipe, err
	}
	for _, p := range pieces {
		recipe.Pieces = append(recipe.Pieces, storage.Piece{Literal: p.Literal, Digest: p.File.Digest, Size: p.File.Size})
	}
	return recipe, nil
}

// compare reads the composition and compares its digest. A layer that failed is not tried again, since that reads
// as much as its engine has. Errors: CodeDigest.
func (c *Composer) compare(ctx context.Context, recipe storage.Recipe) error {
	blob, err := Open(ctx, c.stored, recipe)
	if err != nil {
		return damaged(ctx, recipe.Digest, err)
	}
	defer blob.Close() //nolint:errcheck // it was read only
	hash, err := registry.NewHash(recipe.Digest)
	if err != nil {
		return err
	}
	if err := copyUntil(ctx, hash, blob); err != nil {
		return damaged(ctx, recipe.Digest, err)
	}
	if got := digest.NewDigest(recipe.Digest.Algorithm(), hash); got != recipe.Digest {
		c.never.Put(recipe.Digest, struct{}{}, 2*len(recipe.Digest))
		return registry.Errorf(registry.CodeDigest, "layer %s is not what its engine makes: that is %s, or a part is damaged", recipe.Digest, got)
	}
	return nil
}

// readBytes is how much is read at a time.
const readBytes = 1 << 20

// copyUntil copies until ctx ends.
func copyUntil(ctx context.Context, w io.Writer, r io.Reader) error {
	buffer := make([]byte, readBytes)
	for {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		n, err := r.Read(buffer)
		if _, failed := w.Write(buffer[:n]); failed != nil {
			return failed
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// isStored reports whether the storage has own bytes of d.
func (c *Composer) isStored(ctx context.Context, d registry.Digest) (bool, error) {
	blob, _, err := c.stored.Open(ctx, d)
	if registry.HasCode(err, registry.CodeNotFound) {
		return false, nil
	}
	if err != nil {
		return false, damaged(ctx, d, err)
	}
	return true, blob.Close()
}

// part reads a stored manifest of a part. Errors: CodeInvalid for another kind of document.
func (c *Composer) part(ctx context.Context, d registry.Digest, kind artifact.PartKind) (storage.FetchedPart, error) {
	blob, size, err := c.stored.Open(ctx, d)
	if err != nil {
		return storage.FetchedPart{}, damaged(ctx, d, err)
	}
	defer blob.Close()
	if size > maxDocument {
		return storage.FetchedPart{}, registry.Errorf(registry.CodeInvalid, "manifest %s has %d bytes: at most %d are read", d, size, maxDocument)
	}
	raw, err := io.ReadAll(io.LimitReader(blob, maxDocument))
	if err != nil {
		return storage.FetchedPart{}, damaged(ctx, d, registry.Errorf(registry.CodeOf(err), "read manifest %s: %w", d, err))
	}
	if d.Algorithm().FromBytes(raw) != d {
		return storage.FetchedPart{}, registry.Errorf(registry.CodeDigest, "the stored bytes of manifest %s are damaged", d)
	}
	part, err := oci.ReadPart(raw)
	if err == nil && part.Role != kind {
		err = registry.Errorf(registry.CodeInvalid, "manifest %s has the role %q, want %s", d, part.Role, kind)
	}
	return part, err
}
