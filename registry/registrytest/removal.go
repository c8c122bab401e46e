package registrytest

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/storage"
)

// removal asks for a minute to remove what was marked at dusk.
func removal(id string, words ...string) storage.RemovalRequest {
	r := storage.RemovalRequest{ID: id, Before: dusk(), Lasting: time.Minute}
	for _, word := range words {
		r.Digests = append(r.Digests, d(word))
	}
	return r
}

// wantBegun wants a removal to begin, of some of what was asked for.
func wantBegun(t *testing.T, c Collectable, r storage.RemovalRequest, words ...string) {
	t.Helper()
	begun, err := c.BeginRemoval(t.Context(), r)
	must(t, err)
	want := removal("", words...).Digests
	slices.Sort(begun)
	slices.Sort(want)
	wantEqual(t, begun, want)
}

// wantRescind wants to be told of a removal, or of none.
func wantRescind(t *testing.T, c Collectable, word string, want storage.Removal) {
	t.Helper()
	got, err := c.Unmark(t.Context(), d(word))
	must(t, err)
	wantEqual(t, got, want)
}

func wantConfirmed(t *testing.T, c Collectable, id string, least time.Duration, want bool) {
	t.Helper()
	got, err := c.ConfirmRemoval(t.Context(), id, least)
	must(t, err)
	wantEqual(t, got, want)
}

func wantDue(t *testing.T, c Collectable, words ...string) {
	t.Helper()
	got, want := collect(t, c.MarkedBefore(t.Context(), dusk())), removal("", words...).Digests
	slices.Sort(got)
	slices.Sort(want)
	wantEqual(t, got, want)
}

func mark(t *testing.T, c Collectable, words ...string) {
	t.Helper()
	must(t, c.Mark(t.Context(), dusk(), removal("", words...).Digests))
}

func testRemoval(t *testing.T, c Collectable, pass func(time.Duration)) {
	mark(t, c, "x", "y", "z", "w")
	must(t, second(c.Unmark(t.Context(), d("w"))))
	early := removal("early", "x")
	early.Before = dusk().Add(-time.Microsecond)
	wantBegun(t, c, early)
	wantConfirmed(t, c, "early", 0, false)
	wantBegun(t, c, removal("one", "x", "y", "z", "w", "never marked"), "x", "y", "z")
	wantConfirmed(t, c, "one", time.Minute, true)
	wantConfirmed(t, c, "another", 0, false)
	wantConfirmed(t, c, "", 0, false)
	pass(20 * time.Second)
	wantConfirmed(t, c, "one", 40*time.Second, true)
	wantConfirmed(t, c, "one", 40*time.Second+time.Microsecond, false)
	must(t, c.EndRemoval(t.Context(), "another", removal("", "x").Digests, removal("", "y").Digests))
	wantRescind(t, c, "x", storage.Removal{ID: "one", Left: 40 * time.Second})
	wantRescind(t, c, "y", storage.Removal{ID: "one", Left: 40 * time.Second})
	must(t, c.EndRemoval(t.Context(), "one", removal("", "x").Digests, removal("", "y").Digests))
	wantDue(t, c, "y", "z")
	wantRescind(t, c, "x", storage.Removal{})
	wantRescind(t, c, "y", storage.Removal{})
	wantRescind(t, c, "z", storage.Removal{ID: "one", Left: 40 * time.Second}) // nobody knows whether it is gone
	wantDue(t, c, "z")
}

// What a repository holds is not removed, and is marked no more.
func testRemovalHeld(t *testing.T, c Collectable, _ func(time.Duration)) {
	stocked(t, c)
	mark(t, c, "blob", "n", "x")
	wantBegun(t, c, removal("one", "blob", "n", "x"), "x")
	wantDue(t, c, "x")
}

// While one removes, others neither do nor end it.
func testRemovalAlone(t *testing.T, c Collectable, pass func(time.Duration)) {
	mark(t, c, "x", "y")
	wantBegun(t, c, removal("one", "x"), "x")
	wantBegun(t, c, removal("two", "x", "y"), "y")
	must(t, c.Mark(t.Context(), dusk().Add(time.Hour), removal("", "x").Digests))
	must(t, c.TakeOver(t.Context(), d("x"), "one"))
	must(t, c.AddBlob(t.Context(), "staging/a", d("x"), 1)) // by somebody who looked before that
	wantBegun(t, c, removal("three", "x"))
	wantRescind(t, c, "x", storage.Removal{ID: "one", Left: time.Minute})
	pass(time.Second)
	wantRescind(t, c, "x", storage.Removal{ID: "one", Left: 59 * time.Second})
	wantConfirmed(t, c, "one", 59*time.Second, true)
}

// A removal that nobody ends keeps what it has, until somebody takes it over who knows that
// nobody can delete any more.
func testRemovalRunsOut(t *testing.T, c Collectable, pass func(time.Duration)) {
	mark(t, c, "x", "y")
	wantBegun(t, c, removal("one", "x", "y"), "x", "y")
	pass(time.Minute + time.Second)
	wantConfirmed(t, c, "one", 0, false)
	wantRescind(t, c, "x", storage.Removal{ID: "one", Left: -time.Second})
	wantBegun(t, c, removal("two", "x"))
	must(t, c.TakeOver(t.Context(), d("x"), "two"))
	wantRescind(t, c, "x", storage.Removal{ID: "one", Left: -time.Second})
	must(t, c.TakeOver(t.Context(), d("x"), "one"))
	wantRescind(t, c, "x", storage.Removal{})
	wantDue(t, c, "y")
	must(t, c.TakeOver(t.Context(), d("x"), ""))
	must(t, c.TakeOver(t.Context(), d("y"), ""))
	wantDue(t, c, "y")
}

// A collector takes over what was abandoned before a time that it knows to be safe, and
// spares what somebody holds by then.
func testRemovalTakenOver(t *testing.T, c Collectable, pass func(time.Duration)) {
	mark(t, c, "x", "y", "z")
	wantBegun(t, c, removal("one", "x", "y"), "x", "y")
	pass(30 * time.Second)
	wantBegun(t, c, removal("two", "z"), "z")
	must(t, c.AddBlob(t.Context(), "staging/a", d("y"), 1))
	pass(45 * time.Second)
	third := removal("three", "x", "y", "z")
	var err error
	third.Abandoned, err = c.CatalogTime(t.Context())
	must(t, err)
	wantBegun(t, c, third, "x")
	wantRescind(t, c, "x", storage.Removal{ID: "three", Left: time.Minute})
	wantRescind(t, c, "y", storage.Removal{})
	wantRescind(t, c, "z", storage.Removal{ID: "two", Left: 15 * time.Second})
	must(t, c.EndRemoval(t.Context(), "one", removal("", "x").Digests, nil)) // it comes too late
	wantRescind(t, c, "x", storage.Removal{ID: "three", Left: time.Minute})
}

// Of a membership and a removal that come at the same time, the one that is second sees the
// other.
func testRemovalRace(t *testing.T, c Collectable, _ func(time.Duration)) {
	for _, word := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
		mark(t, c, word)
		var both sync.WaitGroup
		var begun []registry.Digest
		var seen storage.Removal
		both.Go(func() {
			var err error
			if begun, err = c.BeginRemoval(t.Context(), removal(word, word)); err != nil {
				t.Error(err)
			}
		})
		both.Go(func() {
			if err := c.AddBlob(t.Context(), "staging/a", d(word), 1); err != nil {
				t.Error(err)
				return
			}
			var err error
			if seen, err = c.Unmark(t.Context(), d(word)); err != nil {
				t.Error(err)
			}
		})
		both.Wait()
		if len(begun) > 0 && seen.ID != word {
			t.Errorf(
				"blob %s belongs to a repository, is being removed, and who added it was told of the removal %q, want %q", word, seen.ID, word)
		}
	}
}

// RemovableBlobs is bytes that a collector can delete.
type RemovableBlobs interface {
	storage.Blobs
	storage.Remover
}

// TestRemover is the contract of [storage.Remover]. That a permit which has run out deletes
// nothing is for the tests of each storage.
func TestRemover(t *testing.T, open func(t *testing.T) RemovableBlobs) {
	t.Run("deletes", func(t *testing.T) {
		t.Parallel()
		blobs := open(t)
		put(t, blobs, "gone")
		put(t, blobs, "kept")
		permit, err := blobs.Permit(t.Context())
		must(t, err)
		for range 2 {
			must(t, permit.Delete(t.Context(), d("gone")))
			must(t, permit.Delete(t.Context(), d("never there")))
		}
		wantCode(t, permit.Delete(t.Context(), "sha256:../x"), registry.CodeInvalid)
		must(t, permit.Close())
		_, _, err = blobs.Open(t.Context(), d("gone"))
		wantCode(t, err, registry.CodeNotFound)
		wantBlob(t, blobs, d("kept"), []byte("kept"))
		must(t, blobs.Await(t.Context()))
	})
	t.Run("several at once", func(t *testing.T) {
		t.Parallel()
		blobs := open(t)
		put(t, blobs, "gone")
		one, err := blobs.Permit(t.Context())
		must(t, err)
		two, err := blobs.Permit(t.Context())
		must(t, err)
		must(t, one.Close())
		must(t, two.Delete(t.Context(), d("gone")))
		must(t, two.Close())
		must(t, blobs.Await(t.Context()))
		wantNothing(t, blobs, d("gone"))
	})
	t.Run("canceled", func(t *testing.T) {
		t.Parallel()
		blobs := open(t)
		put(t, blobs, "kept")
		permit, err := blobs.Permit(t.Context())
		must(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := permit.Delete(ctx, d("kept")); err == nil {
			t.Error("a deletion that was canceled succeeded")
		}
		must(t, permit.Close())
		wantBlob(t, blobs, d("kept"), []byte("kept"))
		if _, err := blobs.Permit(ctx); err == nil {
			t.Error("a permit that was canceled was given")
		}
	})
}
