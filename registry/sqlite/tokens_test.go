package sqlite_test

import (
	"path/filepath"
	"testing"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/registrytest"
)

func TestTokens(t *testing.T) {
	t.Parallel()
	registrytest.TestTokens(t, func(t *testing.T) registry.Tokens {
		return open(t, filepath.Join(t.TempDir(), "catalog.db"))
	})
}

func TestSessions(t *testing.T) {
	t.Parallel()
	registrytest.TestSessions(t, func(t *testing.T) registry.Sessions {
		return open(t, filepath.Join(t.TempDir(), "catalog.db"))
	})
}

func TestSecrets(t *testing.T) {
	t.Parallel()
	registrytest.TestSecrets(t, func(t *testing.T) registry.Secrets {
		return open(t, filepath.Join(t.TempDir(), "catalog.db"))
	})
}
