package mem_test

import (
	"testing"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/mem"
	"mlpromote.dev/mlpromote/registry/registrytest"
	"mlpromote.dev/mlpromote/registry/storage"
)

func TestBlobs(t *testing.T) {
	t.Parallel()
	registrytest.TestBlobs(t, func(*testing.T) (storage.RepairableBlobs, registrytest.Damage) {
		blobs := mem.NewBlobs()
		return blobs, func(_ *testing.T, d registry.Digest) { blobs.Damage(d) }
	})
}

func TestRemover(t *testing.T) {
	t.Parallel()
	registrytest.TestRemover(t, func(*testing.T) registrytest.RemovableBlobs { return mem.NewBlobs() })
}

// clocked is a database with a clock that a test moves.
func clocked[T any](t *testing.T) (T, func(time.Duration)) {
	t.Helper()
	clock, db := registrytest.NewClock(), mem.New()
	db.Now = clock.Now
	store, ok := any(db).(T)
	if !ok {
		t.Fatalf("%T is no %T", db, store)
	}
	return store, clock.Pass
}

func TestLeases(t *testing.T) {
	t.Parallel()
	registrytest.TestLeases(t, clocked[storage.Leases])
}

func TestIdempotency(t *testing.T) {
	t.Parallel()
	registrytest.TestIdempotency(t, clocked[storage.Idempotency])
}

func TestTables(t *testing.T) {
	t.Parallel()
	registrytest.TestTables(t, func(*testing.T) registrytest.Tables {
		return registrytest.Tables{NodeTypes: mem.NewTable[artifact.Node](), Runtimes: mem.NewTable[artifact.Runtime](), NodeReports: mem.NewTable[storage.NodeReport]()}
	})
}

func TestStore(t *testing.T) {
	t.Parallel()
	registrytest.TestStore(t, func(*testing.T) registrytest.Store { return mem.New() })
}

func TestIntents(t *testing.T) {
	t.Parallel()
	registrytest.TestIntents(t, clocked[registrytest.Store])
}

func TestUploadStates(t *testing.T) {
	t.Parallel()
	registrytest.TestUploadStates(t, clocked[storage.UploadStates])
}

func TestCollection(t *testing.T) {
	t.Parallel()
	registrytest.TestCollection(t, clocked[registrytest.Collectable])
}

func TestConfigurations(t *testing.T) {
	t.Parallel()
	registrytest.TestConfigurations(t, func(*testing.T) registrytest.Configured { return mem.New() })
}

func TestTokens(t *testing.T) {
	t.Parallel()
	registrytest.TestTokens(t, func(*testing.T) storage.Tokens { return mem.New() })
}

func TestSessions(t *testing.T) {
	t.Parallel()
	registrytest.TestSessions(t, func(*testing.T) storage.Sessions { return mem.New() })
}

func TestSecrets(t *testing.T) {
	t.Parallel()
	registrytest.TestSecrets(t, func(*testing.T) storage.Secrets { return mem.New() })
}
