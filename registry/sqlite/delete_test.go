package sqlite_test

import (
	"path/filepath"
	"testing"

	"mlpromote.dev/mlpromote/registry/registrytest"
)

func TestDeleter(t *testing.T) {
	t.Parallel()
	registrytest.TestDeleter(t, func(t *testing.T) registrytest.DeletableRefs {
		return open(t, filepath.Join(t.TempDir(), "catalog.db"))
	})
}
