package catalog_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/internal/catalog"
	"mlpromote.dev/mlpromote/registry/mem"
	"mlpromote.dev/mlpromote/registry/storage"
	"mlpromote.dev/mlpromote/registry/trust"
)

// tables are those of a catalog in memory, with some documents in each.
type tables struct {
	nodeTypes    storage.NodeTypes
	runtimes     storage.Runtimes
	webhooks     storage.Webhooks
	deliveries   storage.Deliveries
	restrictions storage.RestrictionBundles
	trust        storage.TrustBundles
	adverse      registry.Table[evidence.AdverseEvidence]
	checkpoints  trust.Checkpoints
}

func (t tables) NodeTypes() storage.NodeTypes { return t.nodeTypes }

func (t tables) Runtimes() storage.Runtimes { return t.runtimes }

func (t tables) Webhooks() storage.Webhooks { return t.webhooks }

func (t tables) Deliveries() storage.Deliveries { return t.deliveries }

func (t tables) RestrictionBundles() storage.RestrictionBundles { return t.restrictions }

func (t tables) TrustBundles() storage.TrustBundles { return t.trust }

func (t tables) AdverseTable() registry.Table[evidence.AdverseEvidence] {
	return t.adverse
}

func (t tables) Checkpoints() trust.Checkpoints { return t.checkpoints }

// filled is a table of n documents.
func filled[T any](t *testing.T, n int) registry.Table[T] {
	t.Helper()
	table := mem.NewTable[T]()
	var document T
	for i := range n {
		if err := table.Put(t.Context(), fmt.Sprintf("n%03d", i), document); err != nil {
			t.Fatal(err)
		}
	}
	return table
}

// Every document that must not be lost is copied once, however many there are, or the copy fails.
func TestCopyTables(t *testing.T) {
	t.Parallel()
	from := tables{filled[artifact.Node](t, 201), filled[artifact.Runtime](t, 100), filled[storage.Webhook](t, 1), filled[storage.Delivery](t, 3),
		filled[storage.RestrictionBundle](t, 1), filled[storage.TrustBundleDocument](t, 2), filled[evidence.AdverseEvidence](t, 5), filled[trust.KeptCheckpoint](t, 4)}
	const documents = 201 + 100 + 1 + 3 + 1 + 2 + 5 + 4
	copied := make(map[string]int)
	kinds := make(map[string]bool)
	err := catalog.CopyTables(t.Context(), from, func(_ context.Context, kind, name, _ string) error {
		kinds[kind] = true
		copied[kind+" "+name]++
		return nil
	})
	if err != nil || len(copied) != documents || len(kinds) != 8 {
		t.Errorf("copied are %d documents of %d kinds, error %v; want %d of 8", len(copied), len(kinds), err, documents)
	}
	for name, times := range copied {
		if times != 1 {
			t.Errorf("%s was copied %d times", name, times)
		}
	}
	for fails := range kinds {
		err := catalog.CopyTables(t.Context(), from, func(_ context.Context, kind, _, _ string) error {
			if kind == fails {
				return errBroken
			}
			return nil
		})
		if !errors.Is(err, errBroken) {
			t.Errorf("a %s that cannot be stored: error %v, want that of the database", fails, err)
		}
	}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	if err := catalog.CopyTables(canceled, from, func(context.Context, string, string, string) error { return nil }); err == nil {
		t.Error("tables that cannot be read: no error")
	}
}
