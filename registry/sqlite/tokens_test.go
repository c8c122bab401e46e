package sqlite_test

import (
	"path/filepath"
	"testing"

	"mlpromote.dev/mlpromote/registry/registrytest"
	"mlpromote.dev/mlpromote/registry/storage"
)

func TestTokens(t *testing.T) {
	t.Parallel()
	registrytest.TestTokens(t, func(t *testing.T) storage.Tokens {
		return open(t, filepath.Join(t.TempDir(), "catalog.db"))
	})
}

func TestSessions(t *testing.T) {
	t.Parallel()
	registrytest.TestSessions(t, func(t *testing.T) storage.Sessions {
		return open(t, filepath.Join(t.TempDir(), "catalog.db"))
	})
}

func TestSecrets(t *testing.T) {
	t.Parallel()
	registrytest.TestSecrets(t, func(t *testing.T) storage.Secrets {
		return open(t, filepath.Join(t.TempDir(), "catalog.db"))
	})
}
