package storage_test

import (
	"strings"
	"testing"
	"time"

	"mlpromote.dev/mlpromote/registry/storage"
)

// The epoch grows with every owner, and the list of previous owners is bounded.
func TestOwnerMark(t *testing.T) {
	t.Parallel()
	var before *storage.ContentMark
	for n := range 40 {
		c := storage.CatalogIdentity{ID: strings.Repeat("c", n+1), Instance: "db", Epoch: int64(n % 3)}
		m := c.Owner(before, noon())
		if m.Catalog != c.ID || m.Version != storage.ContentMarkVersion || len(m.Previous) > 16 {
			t.Fatalf("after %+v comes %+v, want catalog %s and at most 16 owners before it", before, m, c.ID)
		}
		if before != nil && (m.Epoch <= before.Epoch || m.Previous[0] != before.Catalog) {
			t.Fatalf("after %+v comes %+v, want a later epoch and the owner before it", before, m)
		}
		before = &m
	}
	if m := (storage.CatalogIdentity{ID: "c", Epoch: 7}).Owner(nil, noon()); m.Epoch != 7 {
		t.Errorf("a restored mark beside its catalog has epoch %d, want 7 as before", m.Epoch)
	}
	if m := (storage.CatalogIdentity{ID: before.Catalog, Epoch: 99}).Owner(before, noon()); m.Epoch != 100 || m.Previous[0] == before.Catalog {
		t.Errorf("the same catalog again: %+v, want an epoch above the recorded one, and no previous owner that is itself", m)
	}
}

func noon() time.Time { return time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC) }
