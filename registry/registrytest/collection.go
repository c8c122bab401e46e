package registrytest

import (
	"context"
	"errors"
	"iter"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/storage"
)

// Collectable is names that a collector can take away.
type Collectable interface {
	DeletableRefs
	storage.GCStore
	storage.Inventory
	storage.MarkStore
	storage.Removals
	storage.Recipes
	storage.CatalogClock
}

// TestCollection is the contract of [storage.GCStore] and [storage.MarkStore] over the
// names of one store, and of [storage.RepositoryRecords] towards them.
func TestCollection(t *testing.T, open Clocked[Collectable]) {
	for name, test := range map[string]func(*testing.T, Collectable, func(time.Duration)){
		"holdings":                      testHoldings,
		"inventory":                     testInventory,
		"settle marks":                  testSettleCondemns,
		"settle removes":                testSettleRemoves,
		"settle fails":                  testSettleFails,
		"settle finds nothing":          testSettleNothing,
		"asking unmarks":                testAskingRescinds,
		"asking waits for a settlement": testAskingWaits,
		"unheld bytes":                  testUnheld,
		"due bytes":                     testDue,
		"removal":                       testRemoval,
		"removal of what is held":       testRemovalHeld,
		"removal keeps others away":     testRemovalAlone,
		"removal ends by itself":        testRemovalRunsOut,
		"removal is taken over":         testRemovalTakenOver,
		"removals and memberships race": testRemovalRace,
		"recipes":                       testRecipes,
		"recipe holds its parts":        testRecipeHolds,
		"recipe of mounted content":     testRecipeMounted,
		"recipe is refused":             testRecipeRefused,
		"removal of own bytes":          testRemovalOwn,
		"recipes and removals race":     testRecipeRace,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db, pass := open(t)
			test(t, db, pass)
		})
	}
}

// dusk is when things are marked here.
func dusk() time.Time { return time.Date(2026, 11, 21, 18, 0, 0, 123456000, time.UTC) }

// stocked has a manifest with two tags and two blobs in one repository, and one of the
// blobs in another.
func stocked(t *testing.T, c Collectable) {
	t.Helper()
	must(t, c.PutManifest(t.Context(), "staging/a", record("m", "")))
	must(t, c.PutManifest(t.Context(), "staging/a", record("n", "m")))
	for _, tag := range []string{"2.0.0", "1.0.0"} {
		must(t, c.SetTag(t.Context(), "staging/a", tag, d("m")))
	}
	must(t, c.AddBlob(t.Context(), "staging/a", d("blob"), 4))
	must(t, c.AddBlob(t.Context(), "staging/a", d("m"), 1))
	must(t, c.AddBlob(t.Context(), "prod/a", d("blob"), 4))
}

// holdings reads what a repository holds, without the times of its records.
func holdings(t *testing.T, c storage.GCStore, repository string) []storage.GCRecord {
	t.Helper()
	held, err := c.Records(t.Context(), repository)
	must(t, err)
	for i := range held {
		held[i].Created = time.Time{}
	}
	return held
}

// settle decides without looking.
func settle(t *testing.T, c storage.GCStore, repository string, s storage.GCChanges) { //nolint:unparam // the repository stands where it is settled
	t.Helper()
	must(t, c.UpdateRecords(t.Context(), repository, func([]storage.GCRecord) (storage.GCChanges, error) { return s, nil }))
}

// markedKeys lists what is marked in a repository, and since when.
func markedKeys(t *testing.T, c storage.GCStore, repository string) map[storage.GCRecordKey]time.Time {
	t.Helper()
	found := make(map[storage.GCRecordKey]time.Time)
	for _, h := range holdings(t, c, repository) {
		if !h.Marked.IsZero() {
			found[h.Key()] = h.Marked
		}
	}
	return found
}

func testHoldings(t *testing.T, c Collectable, pass func(time.Duration)) {
	stocked(t, c)
	now, err := c.CatalogTime(t.Context())
	must(t, err)
	names, err := c.Repositories(t.Context())
	must(t, err)
	wantEqual(t, names, []string{"prod/a", "staging/a"})
	m, n := record("m", ""), record("n", "m")
	want := []storage.GCRecord{
		{Digest: m.Digest, Manifest: true, MediaType: m.MediaType, Size: m.Size, Tags: []string{"1.0.0", "2.0.0"}},
		{Digest: n.Digest, Manifest: true, MediaType: n.MediaType, Size: n.Size},
	}
	blobs := []storage.GCRecord{{Digest: d("blob"), Size: 4}, {Digest: d("m"), Size: 1}}
	byDigest := func(a, b storage.GCRecord) int { return cmpStrings(a.Digest, b.Digest) }
	slices.SortFunc(want, byDigest)
	slices.SortFunc(blobs, byDigest)
	wantEqual(t, holdings(t, c, "staging/a"), slices.Concat(want, blobs))
	wantEqual(t, len(holdings(t, c, "no/where")), 0)

	// A record keeps the time at which it came.
	held, err := c.Records(t.Context(), "staging/a")
	must(t, err)
	pass(time.Hour)
	stocked(t, c)
	again, err := c.Records(t.Context(), "staging/a")
	must(t, err)
	wantEqual(t, again, held)
	for _, h := range held {
		wantEqual(t, h.Created, now)
	}
}

// An inventory has every digest once, in pages of any size, and marks what is listed neither as
// used nor as unused.
func testInventory(t *testing.T, c Collectable, pass func(time.Duration)) {
	ctx := t.Context()
	early, err := c.CatalogTime(ctx)
	must(t, err)
	stocked(t, c)
	pass(time.Hour)
	late, err := c.CatalogTime(ctx)
	must(t, err)
	must(t, c.AddBlob(ctx, "prod/b", d("late"), 4))
	must(t, c.AddBlob(ctx, "prod/b", d("m"), 1))
	mark := []storage.GCRecordKey{{Digest: d("m"), Manifest: true}, {Digest: d("blob")}}
	settle(t, c, "staging/a", storage.GCChanges{At: dusk(), Mark: mark})
	for since, want := range map[time.Time][]registry.Digest{
		{}: {d("m"), d("n"), d("blob"), d("late")}, early: {d("m"), d("n"), d("blob"), d("late")}, late: {d("m"), d("late")}, late.Add(time.Hour): nil,
	} {
		slices.Sort(want)
		for limit := 1; limit < 6; limit++ {
			var got []registry.Digest
			for after := registry.Digest(""); ; after = got[len(got)-1] {
				page, err := c.HeldDigests(ctx, after, since, limit)
				must(t, err)
				if len(page) > limit {
					t.Fatalf("%d digests on a page, want at most %d", len(page), limit)
				}
				if len(page) == 0 {
					break
				}
				got = append(got, page...)
			}
			wantEqual(t, got, want)
		}
	}
	for digest, want := range map[registry.Digest][]string{
		d("m"): {"prod/b", "staging/a"}, d("blob"): {"prod/a", "staging/a"}, d("n"): {"staging/a"}, d("nothing"): nil,
	} {
		got, err := c.Holders(ctx, digest)
		must(t, err)
		if !slices.Equal(got, want) {
			t.Errorf("holders of %s: got %q, want %q", digest, got, want)
		}
	}
	wantEqual(t, len(markedKeys(t, c, "staging/a")), 2)
}

func testSettleCondemns(t *testing.T, c Collectable, _ func(time.Duration)) {
	stocked(t, c)
	m, blob := storage.GCRecordKey{Digest: d("m"), Manifest: true}, storage.GCRecordKey{Digest: d("blob")}
	settle(t, c, "staging/a", storage.GCChanges{At: dusk(), Mark: []storage.GCRecordKey{m, blob, {Digest: d("nothing")}}})
	wantEqual(t, markedKeys(t, c, "staging/a"), map[storage.GCRecordKey]time.Time{m: dusk(), blob: dusk()})
	wantEqual(t, len(markedKeys(t, c, "prod/a")), 0)
	settle(t, c, "staging/a", storage.GCChanges{At: dusk().Add(time.Hour), Mark: []storage.GCRecordKey{m}, Unmark: []storage.GCRecordKey{blob}})
	wantEqual(t, markedKeys(t, c, "staging/a"), map[storage.GCRecordKey]time.Time{m: dusk()})
}

func testSettleRemoves(t *testing.T, c Collectable, _ func(time.Duration)) {
	stocked(t, c)
	settle(t, c, "staging/a", storage.GCChanges{At: dusk(),
		Delete: []storage.GCRecordKey{{Digest: d("m"), Manifest: true}, {Digest: d("n"), Manifest: true}, {Digest: d("blob")}}})
	wantEqual(t, holdings(t, c, "staging/a"), []storage.GCRecord{{Digest: d("m"), Size: 1}})
	wantEqual(t, holdings(t, c, "prod/a"), []storage.GCRecord{{Digest: d("blob"), Size: 4}})
	wantTagList(t, c, "staging/a")
	_, err := c.Manifest(t.Context(), "staging/a", d("m"))
	wantCode(t, err, registry.CodeNotFound)
	_, err = c.Blob(t.Context(), "staging/a", d("blob"))
	wantCode(t, err, registry.CodeNotFound)
	referrers, err := c.Referrers(t.Context(), "staging/a", d("m"), "", "")
	must(t, err)
	wantEqual(t, len(referrers), 0)
}

func testSettleFails(t *testing.T, c Collectable, _ func(time.Duration)) {
	stocked(t, c)
	before := holdings(t, c, "staging/a")
	lost := errors.New("lost")
	err := c.UpdateRecords(t.Context(), "staging/a", func(held []storage.GCRecord) (storage.GCChanges, error) {
		return storage.GCChanges{At: dusk(), Delete: []storage.GCRecordKey{held[0].Key()}}, lost
	})
	if !errors.Is(err, lost) {
		t.Errorf("got error %v, want that of decide", err)
	}
	wantEqual(t, holdings(t, c, "staging/a"), before)
}

func testSettleNothing(t *testing.T, c Collectable, _ func(time.Duration)) {
	asked := false
	must(t, c.UpdateRecords(t.Context(), "no/where", func(held []storage.GCRecord) (storage.GCChanges, error) {
		asked = true
		wantEqual(t, len(held), 0)
		return storage.GCChanges{At: dusk(), Delete: []storage.GCRecordKey{{Digest: d("x")}}, Mark: []storage.GCRecordKey{{Digest: d("y")}}}, nil
	}))
	wantEqual(t, asked, true)
	names, err := c.Repositories(t.Context())
	must(t, err)
	wantEqual(t, len(names), 0)
}

// Whoever is told that something is there may rely on it.
func testAskingRescinds(t *testing.T, c Collectable, _ func(time.Duration)) {
	stocked(t, c)
	m, blob := storage.GCRecordKey{Digest: d("m"), Manifest: true}, storage.GCRecordKey{Digest: d("blob")}
	for _, ask := range []func() error{
		func() error {
			_, err := c.Manifest(t.Context(), "staging/a", m.Digest)
			return errors.Join(err, second(c.Blob(t.Context(), "staging/a", blob.Digest)))
		},
		func() error {
			return errors.Join(c.PutManifest(t.Context(), "staging/a", record("m", "")), c.AddBlob(t.Context(), "staging/a", blob.Digest, 4))
		},
	} {
		settle(t, c, "staging/a", storage.GCChanges{At: dusk(), Mark: []storage.GCRecordKey{m, blob, {Digest: d("m")}}})
		must(t, second(c.Blob(t.Context(), "prod/a", blob.Digest))) // another repository's
		wantEqual(t, len(markedKeys(t, c, "staging/a")), 3)
		must(t, ask())
		wantEqual(t, markedKeys(t, c, "staging/a"), map[storage.GCRecordKey]time.Time{{Digest: d("m")}: dusk()})
		must(t, second(c.Blob(t.Context(), "staging/a", d("m"))))
	}
}

func second[T any](_ T, err error) error { return err }

// Who asks while a settlement is made is told what is true when it is done.
func testAskingWaits(t *testing.T, c Collectable, _ func(time.Duration)) {
	stocked(t, c)
	m := storage.GCRecordKey{Digest: d("m"), Manifest: true}
	settle(t, c, "staging/a", storage.GCChanges{At: dusk(), Mark: []storage.GCRecordKey{m}})
	var asked sync.WaitGroup
	var answers [8]error
	must(t, c.UpdateRecords(t.Context(), "staging/a", func([]storage.GCRecord) (storage.GCChanges, error) {
		for i := range answers {
			asked.Go(func() { _, answers[i] = c.Manifest(context.WithoutCancel(t.Context()), "staging/a", m.Digest) })
		}
		return storage.GCChanges{At: dusk(), Delete: []storage.GCRecordKey{m}}, nil
	}))
	asked.Wait()
	for _, err := range answers {
		wantCode(t, err, registry.CodeNotFound)
	}
}

func testUnheld(t *testing.T, c Collectable, _ func(time.Duration)) {
	stocked(t, c)
	got, err := c.WithoutRepository(t.Context(), []registry.Digest{d("x"), d("blob"), d("n"), d("a"), d("m")})
	must(t, err)
	wantEqual(t, got, []registry.Digest{d("x"), d("a")})
	must(t, c.RemoveBlob(t.Context(), "staging/a", d("blob")))
	must(t, c.DeleteManifest(t.Context(), "staging/a", d("n")))
	got, err = c.WithoutRepository(t.Context(), []registry.Digest{d("blob"), d("n")})
	must(t, err)
	wantEqual(t, got, []registry.Digest{d("n")}) // prod has the blob
	got, err = c.WithoutRepository(t.Context(), nil)
	must(t, err)
	wantEqual(t, len(got), 0)
}

func testDue(t *testing.T, c Collectable, _ func(time.Duration)) {
	due := func(before time.Time) []registry.Digest {
		found := collect(t, c.MarkedBefore(t.Context(), before))
		slices.Sort(found)
		return found
	}
	wantEqual(t, len(due(dusk())), 0)
	var many []registry.Digest
	for i := range 1100 {
		many = append(many, digest.FromBytes([]byte{byte(i), byte(i >> 8)}))
	}
	must(t, c.Mark(t.Context(), dusk(), many))
	slices.Sort(many)
	must(t, c.Mark(t.Context(), dusk().Add(time.Hour), []registry.Digest{many[0], d("later")}))
	wantEqual(t, due(dusk()), many)
	wantEqual(t, len(due(dusk().Add(-time.Microsecond))), 0)
	wantEqual(t, len(due(dusk().Add(time.Hour))), len(many)+1)
	must(t, second(c.Unmark(t.Context(), many[0])))
	must(t, second(c.Unmark(t.Context(), d("nobody marked it"))))
	wantEqual(t, due(dusk()), many[1:])
	wantCanceled(t, func(ctx context.Context) iter.Seq2[registry.Digest, error] { return c.MarkedBefore(ctx, dusk()) })
}
