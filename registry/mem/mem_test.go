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

func TestTokens(t *testing.T) {
	t.Parallel()
	registrytest.TestTokens(t, func(*testing.T) registry.Tokens { return mem.New() })
}

func TestSecrets(t *testing.T) {
	t.Parallel()
	registrytest.TestSecrets(t, func(*testing.T) registry.Secrets { return mem.New() })
}
