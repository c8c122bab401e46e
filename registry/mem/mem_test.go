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

func TestLeases(t *testing.T) {
	t.Parallel()
	registrytest.TestLeases(t, func(*testing.T) registry.Leases { return mem.New() })
}

func TestIdempotency(t *testing.T) {
	t.Parallel()
	registrytest.TestIdempotency(t, func(*testing.T) registry.Idempotency { return mem.New() })
}

func TestTables(t *testing.T) {
	t.Parallel()
	registrytest.TestTables(t, func(*testing.T) registrytest.Tables {
		return registrytest.Tables{NodeTypes: mem.NewTable[registry.Node](), Runtimes: mem.NewTable[registry.Runtime]()}
	})
}

func TestStore(t *testing.T) {
	t.Parallel()
	registrytest.TestStore(t, func(*testing.T) registrytest.Store { return mem.New() })
}

func TestUploadStates(t *testing.T) {
	t.Parallel()
	registrytest.TestUploadStates(t, func(*testing.T) registry.UploadStates { return mem.New() })
}

func TestCollection(t *testing.T) {
	t.Parallel()
	registrytest.TestCollection(t, func(*testing.T) registrytest.Collectable { return mem.New() })
}

func TestTokens(t *testing.T) {
	t.Parallel()
	registrytest.TestTokens(t, func(*testing.T) registry.Tokens { return mem.New() })
}

func TestSecrets(t *testing.T) {
	t.Parallel()
	registrytest.TestSecrets(t, func(*testing.T) registry.Secrets { return mem.New() })
}
