package datadir_test

import (
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/registry/datadir"
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

func TestDecide(t *testing.T) {
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
		place    datadir.Place
		want     datadir.Access
		takeOver bool
		says     string
	}{
		"its own content":               {owner, datadir.Place{Mark: mark(nil)}, datadir.Owned, false, ""},
		"a mark that is not recorded":   {fresh, datadir.Place{Mark: mark(nil)}, datadir.Claimable, false, ""},
		"a new catalog, an empty place": {fresh, datadir.Place{Empty: true, CatalogEmpty: true}, datadir.Claimable, false, ""},
		"known from before marks":       {fresh, datadir.Place{Known: true}, datadir.Claimable, false, ""},
		"content of another registry": {
			fresh, datadir.Place{CatalogEmpty: true}, datadir.Refused, false, "does not know and would delete",
		},
		"a catalog without its content": {
			fresh, datadir.Place{Empty: true}, datadir.Refused, true, "does not have the content of catalog c1",
		},
		"the wrong bucket": {
			owner, datadir.Place{Storage: "s3://others", Empty: true}, datadir.Refused, false, "is in s3://models, not in",
		},
		"the wrong bucket, of another catalog": {
			owner, datadir.Place{Storage: "s3://others", Mark: mark(func(m *storage.ContentMark) { m.Catalog = "c2" })},
			datadir.Refused, false, "belongs to catalog c2, and this one is c1",
		},
		"a copy of its bucket": {
			owner, datadir.Place{Storage: "s3://others", Mark: mark(nil)}, datadir.Refused, true, "is in s3://models, not in",
		},
		"the wrong directory": {
			with(func(c *storage.CatalogIdentity) { c.Storage = storage.DirectoryStorage }),
			datadir.Place{Mark: mark(nil)}, datadir.Refused, true, "is in a data directory",
		},
		"a lost mark": {
			owner, datadir.Place{}, datadir.ReadOnly, true, "has no mlpromote-owner.json",
		},
		"an empty place of the same name": {
			owner, datadir.Place{Empty: true}, datadir.Refused, true, "is empty",
		},
		"a lost mark, beside the catalog": {
			with(func(c *storage.CatalogIdentity) { c.Instance = "" }), datadir.Place{}, datadir.Claimable, false, "",
		},
		"a copied catalog": {
			with(func(c *storage.CatalogIdentity) { c.Instance = "db2" }), datadir.Place{Mark: mark(nil)},
			datadir.ReadOnly, true, "another copy of catalog c1",
		},
		"a restored catalog": {
			storage.CatalogIdentity{ID: "c2", Instance: "db2", Origins: []string{"c0", "c1"}}, datadir.Place{Mark: mark(nil)},
			datadir.ReadOnly, true, "restored from its backup",
		},
		"a catalog that lost its content to another": {
			owner, datadir.Place{Mark: mark(func(m *storage.ContentMark) { m.Catalog, m.Previous, m.Epoch = "c2", []string{"c0", "c1"}, 4 })},
			datadir.ReadOnly, true, "took it over from catalog c1",
		},
		"a catalog that was set back": {
			with(func(c *storage.CatalogIdentity) { c.Epoch = 2 }), datadir.Place{Mark: mark(nil)},
			datadir.ReadOnly, true, "got another owner",
		},
		"content that was set back": {
			with(func(c *storage.CatalogIdentity) { c.Epoch = 4 }), datadir.Place{Mark: mark(nil)},
			datadir.ReadOnly, true, "older than the one that catalog c1 recorded",
		},
		"content of another catalog": {
			storage.CatalogIdentity{ID: "c2", Instance: "db1"}, datadir.Place{Mark: mark(nil)},
			datadir.Refused, false, "belongs to catalog c1, and this one is c2",
		},
		"a later version": {
			owner, datadir.Place{Mark: mark(func(m *storage.ContentMark) { m.Version = 2 })}, datadir.Refused, false, "newer version",
		},
		"a mark without a version": {
			owner, datadir.Place{Mark: mark(func(m *storage.ContentMark) { m.Version = 0 })}, datadir.Refused, false, "version",
		},
		"its own, inside of another": {
			owner, datadir.Place{Mark: mark(nil), Overlaps: []string{"s3://models/eu"}},
			datadir.Refused, false, "overlap, and each has its own content",
		},
		"zero values": {storage.CatalogIdentity{}, datadir.Place{}, datadir.Refused, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if c.place.Storage == "" {
				c.place.Storage = here
			}
			c.place.Name = c.place.Storage
			got := datadir.Decide(c.catalog, c.place)
			if got.Access != c.want || got.TakeOver != c.takeOver {
				t.Errorf("decided %q, take-over %v (%s); want %q, %v", got.Access, got.TakeOver, got.Reason, c.want, c.takeOver)
			}
			explained := got.Reason != "" && got.Remedy != ""
			if refused := got.Access == datadir.Refused || got.Access == datadir.ReadOnly; refused && !explained {
				t.Errorf("reason %q, remedy %q; want both", got.Reason, got.Remedy)
			}
			if !strings.Contains(got.Reason, c.says) {
				t.Errorf("reason %q, want %q in it", got.Reason, c.says)
			}
			if err := got.Err(); (err == nil) != (c.want == datadir.Owned) {
				t.Errorf("Err() is %v for access %q", err, c.want)
			}
		})
	}
	if err := (datadir.Verdict{}).Err(); err == nil {
		t.Error("the zero verdict lets content be changed")
	}
}
