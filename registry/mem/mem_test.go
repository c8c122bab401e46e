package mem_test

import (
	"testing"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/mem"
	"mlpromote.dev/mlpromote/registry/registrytest"
)

func TestBlobs(t *testing.T) {
	t.Parallel()
	registrytest.TestBlobs(t, func(*testing.T) registry.Blobs { return mem.NewBlobs() })
}

func TestStore(t *testing.T) {
	t.Parallel()
	registrytest.TestStore(t, func(*testing.T) registrytest.Store { return mem.New() })
}

func TestCollection(t *testing.T) {
	t.Parallel()
	registrytest.TestCollection(t, func(*testing.T) registrytest.Collectable { return mem.New() })
}

func TestLeases(t *testing.T) {
	t.Parallel()
	registrytest.TestLeases(t, func(*testing.T) registry.Leases { return mem.New() })
}
