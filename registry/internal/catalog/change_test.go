package catalog_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/internal/catalog"
	"mlpromote.dev/mlpromote/registry/storage"
)

var errBroken = errors.New("the database does not answer")

// database is a transaction on rows that a test sets. Calls are counted; one of them can fail.
type database struct {
	head  history.Head
	tags  map[string]registry.Digest // by repository and tag
	calls []string
	fails int // number of the call that fails, from 1; 0: none
}

func (d *database) call(name string) error {
	if d.calls = append(d.calls, name); len(d.calls) == d.fails {
		return errBroken
	}
	return nil
}

func (d *database) LastBody(context.Context) (string, error) { return "", d.call("LastBody") }

func (d *database) HeadRow(context.Context, string, string) (history.Head, error) {
	return d.head, d.call("HeadRow")
}

func (d *database) CounterGet(context.Context, string) (int64, error) { return 0, d.call("CounterGet") }

func (d *database) ConfigurationParts(context.Context) ([]history.ConfigurationPart, error) {
	return nil, d.call("ConfigurationParts")
}

func (d *database) HistoryLastSeq(context.Context) (int64, error) { return 0, d.call("HistoryLastSeq") }

func (d *database) Documents(context.Context, string, string, int) ([]catalog.DocumentRow, error) {
	return nil, d.call("Documents")
}

func (d *database) BodiesSince(context.Context, string, int64) ([]string, error) {
	return nil, d.call("BodiesSince")
}

func (d *database) Tag(_ context.Context, repository, tag string) (registry.Digest, error) {
	return d.tags[repository+":"+tag], d.call("Tag")
}

func (d *database) UnmarkManifest(context.Context, storage.ManifestPlace) (int64, error) {
	return 1, d.call("UnmarkManifest")
}

func (d *database) SetHead(context.Context, history.Head) error { return d.call("SetHead") }

func (d *database) PutManifest(context.Context, string, storage.Manifest) error {
	return d.call("PutManifest")
}

func (d *database) PutDocument(context.Context, string, string, string) error {
	return d.call("PutDocument")
}

func (d *database) MoveTag(context.Context, storage.TagMove) error { return d.call("MoveTag") }

func (d *database) EndIntent(context.Context, string, string, registry.Digest) error {
	return d.call("EndIntent")
}

func (d *database) AddToCounter(context.Context, string, int64) error { return d.call("AddToCounter") }

func (d *database) AppendEvent(context.Context, int64, string) error { return d.call("AppendEvent") }

func (d *database) SetConfigurationPart(context.Context, history.ConfigurationPart) error {
	return d.call("SetConfigurationPart")
}

// publication is a change that sets a head, and everything else that a change can set.
func publication() storage.Change {
	release := digest.FromString("release")
	move := storage.TagMove{Repository: "prod/digits", Tag: "1.0.0", Digest: release, Immutable: true}
	return storage.Change{
		Event:         history.Event{Time: time.Unix(1, 0), Kind: history.EventPromote, Environment: "prod", Model: "digits", Version: "1.0.0", Release: release},
		DecisionBasis: &history.DecisionBasis{ModelState: history.ModelState{Environment: "prod", Model: "digits"}}, Move: &storage.HeadMove{},
		Adds:      []storage.RepositoryManifest{{Repository: "prod/digits"}},
		Needs:     []storage.ManifestPlace{{Repository: "prod/digits", Digest: release}},
		Tags:      []storage.TagMove{move, {Repository: "prod/digits", Tag: "current", Digest: release}},
		EndIntent: true,
		Configure: &history.ConfigurationMove{To: history.Configuration{Environments: digest.FromString("environments.yaml")}},
	}
}

// apply decides a change and writes it.
func (d *database) apply(ctx context.Context, c storage.Change) (catalog.Outcome, error) {
	o, err := catalog.Decide(ctx, catalog.Reader{Rows: d}, c)
	if err != nil {
		return o, err
	}
	return o, o.Write(ctx, d)
}

// Whatever call of a database fails, the change fails, and nothing is written after it: the transaction is undone. The
// event comes last, since readers of the history look for its effects.
func TestChangesFailWithTheirDatabase(t *testing.T) {
	t.Parallel()
	restriction := publication()
	restriction.Event.Kind = history.EventRestrict
	adverse := publication()
	adverse.Keeps = []evidence.AdverseEvidence{{Environment: "prod", Model: "digits"}}
	for name, change := range map[string]storage.Change{"a publication": publication(), "a restriction": restriction, "adverse evidence": adverse} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			whole := new(database)
			if _, err := whole.apply(t.Context(), change); err != nil {
				t.Fatal(err)
			}
			if last := whole.calls[len(whole.calls)-1]; last != "AppendEvent" || slices.Contains(whole.calls, "AddToCounter") != (name != "a publication") {
				t.Errorf("calls were %q, want the event at the end, and a restriction or adverse evidence counted", whole.calls)
			}
			for i := range whole.calls {
				d := &database{fails: i + 1}
				if _, err := d.apply(t.Context(), change); !errors.Is(err, errBroken) || len(d.calls) != i+1 {
					t.Errorf("%s failed: error %v after the calls %q, want it at once", whole.calls[i], err, d.calls)
				}
			}
		})
	}
}

// A change that is refused writes nothing.
func TestDecideRefuses(t *testing.T) {
	t.Parallel()
	other := digest.FromString("other")
	for name, c := range map[string]struct {
		change   func(*storage.Change)
		database *database
		code     registry.Code // empty: it is made
	}{
		"a new version":           {func(*storage.Change) {}, new(database), ""},
		"the same version again":  {func(*storage.Change) {}, &database{tags: map[string]registry.Digest{"prod/digits:1.0.0": digest.FromString("release")}}, ""},
		"a version that is taken": {func(*storage.Change) {}, &database{tags: map[string]registry.Digest{"prod/digits:1.0.0": other}}, registry.CodeConflict},
		"a tag that may move":     {func(*storage.Change) {}, &database{tags: map[string]registry.Digest{"prod/digits:current": other}}, ""},
		"two versions in one change": {func(c *storage.Change) {
			c.Tags = append(c.Tags, storage.TagMove{Repository: "prod/digits", Tag: "1.0.0", Digest: other, Immutable: true})
		}, new(database), registry.CodeConflict},
		"a head without a basis":     {func(c *storage.Change) { c.DecisionBasis = nil }, new(database), registry.CodeInvalid},
		"a head without a release":   {func(c *storage.Change) { c.Event.Release = "" }, new(database), registry.CodeInvalid},
		"another configuration":      {func(c *storage.Change) { c.Configure.Expect.Environments = other }, new(database), registry.CodeConflict},
		"a decision that is too old": {func(c *storage.Change) { c.DecisionBasis.Until = c.Event.Time }, new(database), registry.CodeConflict},
		"an acceptance of a head that moved": {func(c *storage.Change) {
			*c = storage.Change{Event: history.Event{Kind: history.EventAccept, Environment: "prod", Model: "digits"}, DecisionBasis: c.DecisionBasis}
		}, &database{head: history.Head{Environment: "prod", Model: "digits", Release: other}}, registry.CodeConflict},
		"a head that moved": {func(*storage.Change) {},
			&database{head: history.Head{Environment: "prod", Model: "digits", Release: other}}, registry.CodeConflict},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			change := publication()
			c.change(&change)
			o, err := c.database.apply(t.Context(), change)
			if (err == nil) != (c.code == "") || err != nil && !registry.HasCode(err, c.code) {
				t.Errorf("got %+v and error %v, want the code %q", o, err, c.code)
			}
			if wrote := slices.ContainsFunc(c.database.calls, func(call string) bool { return strings.HasPrefix(call, "Set") || call == "MoveTag" }); wrote != (err == nil) {
				t.Errorf("the calls were %q, error %v", c.database.calls, err)
			}
		})
	}
}

// A head that stays keeps its time.
func TestHeadsKeepTheirTime(t *testing.T) {
	t.Parallel()
	change := publication()
	since := time.Unix(0, 0).UTC()
	for name, c := range map[string]struct {
		before registry.Digest
		want   time.Time
	}{"the same release": {change.Event.Release, since}, "another release": {digest.FromString("other"), change.Event.Time.UTC()}} {
		moved := publication()
		head := history.Head{Environment: "prod", Model: "digits", Release: c.before, Since: since}
		moved.DecisionBasis.Head = head
		o, err := (&database{head: head}).apply(t.Context(), moved)
		if err != nil || o.Head == nil || !o.Head.Since.Equal(c.want) {
			t.Errorf("%s: got %+v and error %v, want it since %s", name, o.Head, err, c.want)
		}
	}
}

// records are those of a repository. Calls are counted as those of a database.
type records struct{ database }

func (r *records) TagsOf(context.Context) (map[registry.Digest][]string, error) {
	return map[registry.Digest][]string{"sha256:m": {"1.0.0"}}, r.call("TagsOf")
}

func (r *records) ManifestRecords(context.Context) ([]storage.GCRecord, error) {
	return []storage.GCRecord{{Digest: "sha256:m"}}, r.call("ManifestRecords")
}

func (r *records) BlobRecords(context.Context) ([]storage.GCRecord, error) {
	return []storage.GCRecord{{Digest: "sha256:b"}}, r.call("BlobRecords")
}

func (r *records) UnmarkRecord(context.Context, storage.GCRecordKey) error {
	if err := r.call("UnmarkRecord"); err != nil {
		return err
	}
	return catalog.ErrNoRow
}

func (r *records) MarkRecord(context.Context, storage.GCRecordKey, time.Time) error {
	return r.call("MarkRecord")
}

func (r *records) DeleteRecord(context.Context, storage.GCRecordKey) error {
	return r.call("DeleteRecord")
}

// The collector decides about all records or none, and a record that is gone already is no error.
func TestUpdateRecords(t *testing.T) {
	t.Parallel()
	keys := []storage.GCRecordKey{{}}
	changes := storage.GCChanges{Unmark: keys, Mark: keys, Delete: keys}
	decide := func(held []storage.GCRecord) (storage.GCChanges, error) {
		if len(held) != 2 || held[0].Digest != "sha256:m" || !slices.Equal(held[0].Tags, []string{"1.0.0"}) || held[1].Digest != "sha256:b" {
			t.Errorf("decides about %+v, want the manifest with its tag and the blob", held)
		}
		return changes, nil
	}
	want := []string{"TagsOf", "ManifestRecords", "BlobRecords", "UnmarkRecord", "MarkRecord", "DeleteRecord"}
	whole := new(records)
	if err := catalog.UpdateRecords(t.Context(), whole, decide); err != nil || !slices.Equal(whole.calls, want) {
		t.Errorf("calls were %q, error %v; want %q", whole.calls, err, want)
	}
	for i, name := range want {
		r := &records{database{fails: i + 1}}
		if err := catalog.UpdateRecords(t.Context(), r, decide); !errors.Is(err, errBroken) || len(r.calls) != i+1 {
			t.Errorf("%s failed: error %v after %q", name, err, r.calls)
		}
	}
	r := new(records)
	refuses := func([]storage.GCRecord) (storage.GCChanges, error) { return changes, errBroken }
	if err := catalog.UpdateRecords(t.Context(), r, refuses); !errors.Is(err, errBroken) || len(r.calls) != 3 {
		t.Errorf("a decision that failed: error %v after %q", err, r.calls)
	}
}

// A digest is unmarked unless its removal has begun, also when that begins meanwhile.
func TestUnmark(t *testing.T) {
	t.Parallel()
	marked, begun := storage.Removal{}, storage.Removal{ID: "collector"}
	type row struct {
		removal storage.Removal
		found   bool
		err     error
	}
	for name, c := range map[string]struct {
		rows    []row // that are read, one after the other
		removes []int64
		fails   error // of the removal of the mark
		want    storage.Removal
		err     error
	}{
		"it is not marked":           {[]row{{marked, false, nil}}, nil, nil, marked, nil},
		"it is marked":               {[]row{{marked, true, nil}}, []int64{1}, nil, marked, nil},
		"its removal has begun":      {[]row{{begun, true, nil}}, nil, nil, begun, nil},
		"its removal begins":         {[]row{{marked, true, nil}, {begun, true, nil}}, []int64{0}, nil, begun, nil},
		"another client unmarks it":  {[]row{{marked, true, nil}, {marked, false, nil}}, []int64{0}, nil, marked, nil},
		"the row cannot be read":     {[]row{{marked, false, errBroken}}, nil, nil, marked, errBroken},
		"the mark cannot be removed": {[]row{{marked, true, nil}}, []int64{0}, errBroken, marked, errBroken},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			reads, removes := 0, 0
			got, err := catalog.Unmark(
				func() (storage.Removal, bool, error) {
					reads++
					r := c.rows[reads-1]
					return r.removal, r.found, r.err
				},
				func() (int64, error) { removes++; return c.removes[removes-1], c.fails })
			if got.ID != c.want.ID || !errors.Is(err, c.err) || reads != len(c.rows) || removes != len(c.removes) {
				t.Errorf("got %+v and error %v after %d reads and %d removals, want %+v and %v", got, err, reads, removes, c.want, c.err)
			}
		})
	}
}
