package distribution

import (
	"bytes"
	"context"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/storage"
)

// openManifest opens the bytes of a manifest whose record was just read. It caches frequently
// used manifests in memory and verifies their digest. Errors: as readSmall.
func openManifest(ctx context.Context, h *handler, m storage.Manifest) (storage.Blob, error) {
	if m.Size > smallManifest {
		return openBlob(ctx, h, m.Digest, m.Size)
	}
	raw, ok := h.manifests.Get(m.Digest)
	if !ok {
		var err error
		if raw, err = readManifestBytes(ctx, h, m); err != nil {
			return nil, err
		}
		h.manifests.Put(m.Digest, raw, len(raw))
	}
	return inMemory{bytes.NewReader(raw)}, nil
}

func readManifestBytes(ctx context.Context, h *handler, m storage.Manifest) ([]byte, error) {
	raw, err := readSmall(ctx, h, m.Digest, m.Size)
	if err != nil {
		return nil, registry.Errorf(registry.CodeOf(err), "manifest: %w", err)
	}
	return raw, nil
}
