package gate

import (
	"context"
	"io"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/imageform"
	"mlpromote.dev/mlpromote/registry/internal/lru"
	"mlpromote.dev/mlpromote/registry/oci"
	"mlpromote.dev/mlpromote/registry/storage"
)

// Open returns content by its digest.
type Open func(ctx context.Context, d registry.Digest) (storage.Blob, int64, error)

// images recomputes the image forms of engines.
type images struct {
	open   Open
	turns  *turns
	passed *lru.Cache[registry.Digest, struct{}] // manifests
}

// readManifest returns the bytes of a stored manifest. Errors: CodeNotFound.
type readManifest func(ctx context.Context, d registry.Digest) ([]byte, error)

// all recomputes the images of a release whose engines are all stored.
func (g images) all(ctx context.Context, read readManifest, digests []registry.Digest) error {
	for _, d := range digests {
		if _, ok := g.passed.Get(d); ok {
			continue
		}
		raw, err := read(ctx, d)
		if err != nil {
			return err
		}
		part, err := oci.ReadPart(raw)
		if err != nil {
			return registry.Errorf(registry.CodeOf(err), "image %s: %w", d, err)
		}
		recomputed, err := g.one(ctx, read, d, part.ImageOf)
		if err != nil {
			return err
		}
		if !recomputed {
			return registry.Errorf(registry.CodeInvalid, "image %s is of engine %s, which is not stored: push the engine first", d, part.ImageOf)
		}
	}
	return nil
}

// one recomputes the image form of an engine. If the engine is not stored yet, the image passes for now, since clients
// push the manifests of an index in any order: the index is refused until all of them are right.
func (g images) one(ctx context.Context, read readManifest, d, engine registry.Digest) (recomputed bool, err error) {
	raw, err := read(ctx, engine)
	if registry.HasCode(err, registry.CodeNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	part, err := oci.ReadPart(raw)
	if err != nil || part.Role != artifact.PartEngine {
		return false, registry.Errorf(registry.CodeTrust, "image %s is said to be of engine %s, which is no engine", d, engine)
	}
	caller, _ := storage.PrincipalOf(ctx)
	done, err := g.turns.take(ctx, caller.Name)
	if err != nil {
		return false, err
	}
	defer done()
	open := func(f artifact.File) (io.ReadCloser, error) {
		blob, _, err := g.open(ctx, f.Digest)
		return blob, err
	}
	part.Engine.Digest = engine
	if err := imageform.Check(ctx, d, imageform.Of(part.Engine, part.Files), open); err != nil {
		return false, err
	}
	g.passed.Put(d, struct{}{}, 2*len(d))
	return true, nil
}

// maxDocument is the largest manifest that is read.
const maxDocument = 4 << 20

// document reads a stored manifest. Errors: CodeDigest if its bytes were changed; those of open.
func (g images) document(ctx context.Context, d registry.Digest) ([]byte, error) {
	blob, size, err := g.open(ctx, d)
	if err != nil {
		return nil, err
	}
	defer blob.Close()
	if size > maxDocument {
		return nil, registry.Errorf(registry.CodeInvalid, "manifest %s has %d bytes: at most %d are read", d, size, maxDocument)
	}
	raw, err := io.ReadAll(io.LimitReader(blob, maxDocument+1))
	if err != nil {
		return nil, registry.Errorf(registry.CodeUnavailable, "read manifest %s: %w", d, err)
	}
	if got := d.Algorithm().FromBytes(raw); got != d {
		return nil, registry.Errorf(registry.CodeDigest, "the stored bytes of manifest %s are damaged: restore them from a backup", d)
	}
	return raw, nil
}
