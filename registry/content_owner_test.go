package registry_test

import (
	"strings"
	"testing"
	"time"

	"mlpromote.dev/mlpromote/registry"
)

// mark is the mark of catalog c1 in the database db1, in epoch 3.
func mark(edit func(*registry.ContentMark)) *registry.ContentMark {
	m := &registry.ContentMark{Version: registry.ContentMarkVersion, Catalog: "c1", Instance: "db1", Epoch: 3}
	if edit != nil {
		edit(m)
	}
	return m
}

func noon() time.Time { return time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC) }

func TestDecideContentAccess(t *testing.T) {
	t.Parallel()
	const here = "s3://models"
	owner := registry.CatalogIdentity{ID: "c1", Instance: "db1", Storage: here, Epoch: 3}
	with := func(edit func(*registry.CatalogIdentity)) registry.CatalogIdentity {
		c := owner
		edit(&c)
		return c
	}
	fresh := with(func(c *registry.CatalogIdentity) { c.Storage, c.Epoch = "", 0 })
	for name, c := range map[string]struct {
		catalog  registry.CatalogIdentity
		place    registry.ContentPlace
		want     registry.ContentAccess
		takeOver bool
		says     string
	}{
		"its own content":               {owner, registry.ContentPlace{Mark: mark(nil)}, registry.ContentOwned, false, ""},
		"a mark that is not recorded":   {fresh, registry.ContentPlace{Mark: mark(nil)}, registry.ContentClaimable, false, ""},
		"a new catalog, an empty place": {fresh, registry.ContentPlace{Empty: true, CatalogEmpty: true}, registry.ContentClaimable, false, ""},
		"known from before marks":       {fresh, registry.ContentPlace{Known: true}, registry.ContentClaimable, false, ""},
		"content of another registry": {
			fresh, registry.ContentPlace{CatalogEmpty: true}, registry.ContentRefused, false, "does not know and would delete",
		},
		"a catalog without its content": {
			fresh, registry.ContentPlace{Empty: true}, registry.ContentRefused, true, "does not have the content of catalog c1",
		},
		"the wrong bucket": {
			owner, registry.ContentPlace{Storage: "s3://others", Empty: true}, registry.ContentRefused, false, "is in s3://models, not in",
		},
		"the wrong bucket, of another catalog": {
			owner, registry.ContentPlace{Storage: "s3://others", Mark: mark(func(m *registry.ContentMark) { m.Catalog = "c2" })},
			registry.ContentRefused, false, "belongs to catalog c2, and this one is c1",
		},
		"a copy of its bucket": {
			owner, registry.ContentPlace{Storage: "s3://others", Mark: mark(nil)}, registry.ContentRefused, true, "is in s3://models, not in",
		},
		"the wrong directory": {
			with(func(c *registry.CatalogIdentity) { c.Storage = registry.DirectoryStorage }),
			registry.ContentPlace{Mark: mark(nil)}, registry.ContentRefused, true, "is in a data directory",
		},
		"a lost mark": {
			owner, registry.ContentPlace{}, registry.ContentReadOnly, true, "has no mlpromote-owner.json",
		},
		"an empty place of the same name": {
			owner, registry.ContentPlace{Empty: true}, registry.ContentRefused, true, "is empty",
		},
		"a lost mark, beside the catalog": {
			with(func(c *registry.CatalogIdentity) { c.Instance = "" }), registry.ContentPlace{}, registry.ContentClaimable, false, "",
		},
		"a copied catalog": {
			with(func(c *registry.CatalogIdentity) { c.Instance = "db2" }), registry.ContentPlace{Mark: mark(nil)},
			registry.ContentReadOnly, true, "another copy of catalog c1",
		},
		"a restored catalog": {
			registry.CatalogIdentity{ID: "c2", Instance: "db2", Origins: []string{"c0", "c1"}}, registry.ContentPlace{Mark: mark(nil)},
			registry.ContentReadOnly, true, "restored from its backup",
		},
		"a catalog that lost its content to another": {
			owner, registry.ContentPlace{Mark: mark(func(m *registry.ContentMark) { m.Catalog, m.Previous, m.Epoch = "c2", []string{"c0", "c1"}, 4 })},
			registry.ContentReadOnly, true, "took it over from catalog c1",
		},
		"a catalog that was set back": {
			with(func(c *registry.CatalogIdentity) { c.Epoch = 2 }), registry.ContentPlace{Mark: mark(nil)},
			registry.ContentReadOnly, true, "got another owner",
		},
		"content that was set back": {
			with(func(c *registry.CatalogIdentity) { c.Epoch = 4 }), registry.ContentPlace{Mark: mark(nil)},
			registry.ContentReadOnly, true, "older than the one that catalog c1 recorded",
		},
		"content of another catalog": {
			registry.CatalogIdentity{ID: "c2", Instance: "db1"}, registry.ContentPlace{Mark: mark(nil)},
			registry.ContentRefused, false, "belongs to catalog c1, and this one is c2",
		},
		"a later version": {
			owner, registry.ContentPlace{Mark: mark(func(m *registry.ContentMark) { m.Version = 2 })}, registry.ContentRefused, false, "newer version",
		},
		"a mark without a version": {
			owner, registry.ContentPlace{Mark: mark(func(m *registry.ContentMark) { m.Version = 0 })}, registry.ContentRefused, false, "version",
		},
		"its own, inside of another": {
			owner, registry.ContentPlace{Mark: mark(nil), Overlaps: []string{"s3://models/eu"}},
			registry.ContentRefused, false, "overlap, and each has its own content",
		},
		"zero values": {registry.CatalogIdentity{}, registry.ContentPlace{}, registry.ContentRefused, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if c.place.Storage == "" {
				c.place.Storage = here
			}
			c.place.Name = c.place.Storage
			got := registry.DecideContentAccess(c.catalog, c.place)
			if got.Access != c.want || got.TakeOver != c.takeOver {
				t.Errorf("decided %q, take-over %v (%s); want %q, %v", got.Access, got.TakeOver, got.Reason, c.want, c.takeOver)
			}
			explained := got.Reason != "" && got.Remedy != ""
			if refused := got.Access == registry.ContentRefused || got.Access == registry.ContentReadOnly; refused && !explained {
				t.Errorf("reason %q, remedy %q; want both", got.Reason, got.Remedy)
			}
			if !strings.Contains(got.Reason, c.says) {
				t.Errorf("reason %q, want %q in it", got.Reason, c.says)
			}
			if err := got.Err(); (err == nil) != (c.want == registry.ContentOwned) {
				t.Errorf("Err() is %v for access %q", err, c.want)
			}
		})
	}
	if err := (registry.ContentVerdict{}).Err(); err == nil {
		t.Error("the zero verdict lets content be changed")
	}
}

// The epoch grows with every owner, and the list of previous owners is bounded.
func TestOwnerMark(t *testing.T) {
	t.Parallel()
	var before *registry.ContentMark
	for n := range 40 {
		c := registry.CatalogIdentity{ID: strings.Repeat("c", n+1), Instance: "db", Epoch: int64(n % 3)}
		m := c.Owner(before, noon())
		if m.Catalog != c.ID || m.Version != registry.ContentMarkVersion || len(m.Previous) > 16 {
			t.Fatalf("after %+v comes %+v, want catalog %s and at most 16 owners before it", before, m, c.ID)
		}
		if before != nil && (m.Epoch <= before.Epoch || m.Previous[0] != before.Catalog) {
			t.Fatalf("after %+v comes %+v, want a later epoch and the owner before it", before, m)
		}
		before = &m
	}
	if m := (registry.CatalogIdentity{ID: "c", Epoch: 7}).Owner(nil, noon()); m.Epoch != 7 {
		t.Errorf("a restored mark beside its catalog has epoch %d, want 7 as before", m.Epoch)
	}
	if m := (registry.CatalogIdentity{ID: before.Catalog, Epoch: 99}).Owner(before, noon()); m.Epoch != 100 || m.Previous[0] == before.Catalog {
		t.Errorf("the same catalog again: %+v, want an epoch above the recorded one, and no previous owner that is itself", m)
	}
}
