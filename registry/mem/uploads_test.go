package mem_test

import (
	"testing"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/mem"
	"mlpromote.dev/mlpromote/registry/registrytest"
	"mlpromote.dev/mlpromote/registry/storage"
)

func TestUploads(t *testing.T) {
	t.Parallel()
	registrytest.TestUploads(t, func(*testing.T) (storage.Uploads, storage.Blobs, registrytest.Damage) {
		blobs := mem.NewBlobs()
		return mem.NewUploads(blobs), blobs, func(_ *testing.T, d registry.Digest) { blobs.Damage(d) }
	})
}

func TestDeleter(t *testing.T) {
	t.Parallel()
	registrytest.TestDeleter(t, func(*testing.T) registrytest.DeletableRefs { return mem.New() })
}
