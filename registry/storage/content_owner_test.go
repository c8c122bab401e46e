package storage_test

import (
	"strings"
	"testing"
	"time"

	"mlpromote.dev/mlpromote/registry/storage"
)

// mark is the mark of catalog c1 in the database db1, in epoch 3.
func mark(edit func(*storage.ContentMark)) *storage.ContentMark {
	m := &storage.ContentMark{Version: storage.ContentMarkVersion, Catalog: "c1", Instance: "db1", Epoch: 3}
	if edit != nil {
		edit(m)
	}
	return m
}

func noon() time.Time { return time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC) }

func TestDecideContentAccess(t *testing.T) {
	t.Parallel()
	const here = "s3://models"
	owner := storage.CatalogIdentity{ID: "c1", Instance: "db1", Storage: here, Epoch: 3}
	with := func(edit func(*storage.CatalogIdentity)) storage.CatalogIdentity {
		c := owner
		edit(&c)
		return c
	}
	fresh := with(func(c *storage.CatalogIdentity) { c.Storage, c.Epoch = "", 0 })
	for name, c := range map[string]struct {
		catalog  storage.CatalogIdentity
		place    storage.ContentPlace
		want     storage.ContentAccess
		takeOver bool
		says     string
	}{
		"its own content":               {owner, storage.ContentPlace{Mark: mark(nil)}, storage.ContentOwned, false, ""},
		"a mark that is not recorded":   {fresh, storage.ContentPlace{Mark: mark(nil)}, storage.ContentClaimable, false, ""},
		"a new catalog, an empty place": {fresh, storage.ContentPlace{Empty: true, CatalogEmpty: true}, storage.ContentClaimable, false, ""},
		"known from before marks":       {fresh, storage.ContentPlace{Known: true}, storage.ContentClaimable, false, ""},
		"content of another registry": {
			fresh, storage.ContentPlace{CatalogEmpty: true}, storage.ContentRefused, false, "does not know and would delete",
		},
		"a catalog without its content": {
			fresh, storage.ContentPlace{Empty: true}, storage.ContentRefused, true, "does not have the content of catalog c1",
		},
		"the wrong bucket": {
			owner, storage.ContentPlace{Storage: "s3://others", Empty: true}, storage.ContentRefused, false, "is in s3://models, not in",
		},
		"the wrong bucket, of another catalog": {
			owner, storage.ContentPlace{Storage: "s3://others", Mark: mark(func(m *storage.ContentMark) { m.Catalog = "c2" })},
			storage.ContentRefused, false, "belongs to catalog c2, and this one is c1",
		},
		"a copy of its bucket": {
			owner, storage.ContentPlace{Storage: "s3://others", Mark: mark(nil)}, storage.ContentRefused, true, "is in s3://models, not in",
		},
		"the wrong directory": {
			with(func(c *storage.CatalogIdentity) { c.Storage = storage.DirectoryStorage }),
			storage.ContentPlace{Mark: mark(nil)}, storage.ContentRefused, true, "is in a data directory",
		},
		"a lost mark": {
			owner, storage.ContentPlace{}, storage.ContentReadOnly, true, "has no mlpromote-owner.json",
		},
		"an empty place of the same name": {
			owner, storage.ContentPlace{Empty: true}, storage.ContentRefused, true, "is empty",
		},
		"a lost mark, beside the catalog": {
			with(func(c *storage.CatalogIdentity) { c.Instance = "" }), storage.ContentPlace{}, storage.ContentClaimable, false, "",
		},
		"a copied catalog": {
			with(func(c *storage.CatalogIdentity) { c.Instance = "db2" }), storage.ContentPlace{Mark: mark(nil)},
			storage.ContentReadOnly, true, "another copy of catalog c1",
		},
		"a restored catalog": {
			storage.CatalogIdentity{ID: "c2", Instance: "db2", Origins: []string{"c0", "c1"}}, storage.ContentPlace{Mark: mark(nil)},
			storage.ContentReadOnly, true, "restored from its backup",
		},
		"a catalog that lost its content to another": {
			owner, storage.ContentPlace{Mark: mark(func(m *storage.ContentMark) { m.Catalog, m.Previous, m.Epoch = "c2", []string{"c0", "c1"}, 4 })},
			storage.ContentReadOnly, true, "took it over from catalog c1",
		},
		"a catalog that was set back": {
			with(func(c *storage.CatalogIdentity) { c.Epoch = 2 }), storage.ContentPlace{Mark: mark(nil)},
			storage.ContentReadOnly, true, "got another owner",
		},
		"content that was set back": {
			with(func(c *storage.CatalogIdentity) { c.Epoch = 4 }), storage.ContentPlace{Mark: mark(nil)},
			storage.ContentReadOnly, true, "older than the one that catalog c1 recorded",
		},
		"content of another catalog": {
			storage.CatalogIdentity{ID: "c2", Instance: "db1"}, storage.ContentPlace{Mark: mark(nil)},
			storage.ContentRefused, false, "belongs to catalog c1, and this one is c2",
		},
		"a later version": {
			owner, storage.ContentPlace{Mark: mark(func(m *storage.ContentMark) { m.Version = 2 })}, storage.ContentRefused, false, "newer version",
		},
		"a mark without a version": {
			owner, storage.ContentPlace{Mark: mark(func(m *storage.ContentMark) { m.Version = 0 })}, storage.ContentRefused, false, "version",
		},
		"its own, inside of another": {
			owner, storage.ContentPlace{Mark: mark(nil), Overlaps: []string{"s3://models/eu"}},
			storage.ContentRefused, false, "overlap, and each has its own content",
		},
		"zero values": {storage.CatalogIdentity{}, storage.ContentPlace{}, storage.ContentRefused, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if c.place.Storage == "" {
				c.place.Storage = here
			}
			c.place.Name = c.place.Storage
			got := storage.DecideContentAccess(c.catalog, c.place)
			if got.Access != c.want || got.TakeOver != c.takeOver {
				t.Errorf("decided %q, take-over %v (%s); want %q, %v", got.Access, got.TakeOver, got.Reason, c.want, c.takeOver)
			}
			explained := got.Reason != "" && got.Remedy != ""
			if refused := got.Access == storage.ContentRefused || got.Access == storage.ContentReadOnly; refused && !explained {
				t.Errorf("reason %q, remedy %q; want both", got.Reason, got.Remedy)
			}
			if !strings.Contains(got.Reason, c.says) {
				t.Errorf("reason %q, want %q in it", got.Reason, c.says)
			}
			if err := got.Err(); (err == nil) != (c.want == storage.ContentOwned) {
				t.Errorf("Err() is %v for access %q", err, c.want)
			}
		})
	}
	if err := (storage.ContentVerdict{}).Err(); err == nil {
		t.Error("the zero verdict lets content be changed")
	}
}

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
