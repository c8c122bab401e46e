package registrytest

import (
	"context"
	"sync"
	"testing"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/storage"
)

// Owned is content that always belongs to the catalog, and has one collector.
type Owned struct{}

// OwnsContent is true.
func (Owned) OwnsContent(ctx context.Context) (int64, error) { return 1, ctx.Err() }

// LockCollection does not wait.
func (o Owned) LockCollection(ctx context.Context) (storage.CollectionSession, error) {
	return o, ctx.Err()
}

// Held is true.
func (Owned) Held(ctx context.Context) error { return ctx.Err() }

// Release does nothing.
func (Owned) Release() {}

// TestContentMarks is the contract of [storage.ContentMarks] over one place that has no
// mark yet, as several processes open it.
func TestContentMarks(t *testing.T, open func(t *testing.T) func() storage.ContentMarks) {
	mark := func(catalog string, epoch int64) storage.ContentMark {
		return storage.ContentMark{Version: storage.ContentMarkVersion, Catalog: catalog,
			Instance: "here", Epoch: epoch, Since: dusk(), Previous: []string{"before"}}
	}
	t.Run("made once, changed by its tag", func(t *testing.T) {
		t.Parallel()
		marks := open(t)()
		m, tag, err := marks.ContentMark(t.Context())
		if m != nil || tag != "" || err != nil {
			t.Fatalf("a new place has the mark %+v with the tag %q, %v; want none", m, tag, err)
		}
		wantCode(t, marks.SetContentMark(t.Context(), mark("a", 2), "no such tag"), registry.CodeConflict)
		wantCode(t, marks.DeleteContentMark(t.Context(), "no such tag"), registry.CodeConflict)
		must(t, marks.SetContentMark(t.Context(), mark("a", 1), ""))
		wantCode(t, marks.SetContentMark(t.Context(), mark("b", 1), ""), registry.CodeConflict)
		m, first, err := marks.ContentMark(t.Context())
		must(t, err)
		wantEqual(t, *m, mark("a", 1))
		must(t, marks.SetContentMark(t.Context(), mark("b", 2), first))
		wantCode(t, marks.SetContentMark(t.Context(), mark("c", 2), first), registry.CodeConflict)
		wantCode(t, marks.DeleteContentMark(t.Context(), first), registry.CodeConflict)
		m, second, err := marks.ContentMark(t.Context())
		must(t, err)
		wantEqual(t, *m, mark("b", 2))
		must(t, marks.DeleteContentMark(t.Context(), second))
		if m, _, err := marks.ContentMark(t.Context()); m != nil || err != nil {
			t.Errorf("after it was deleted the mark is %+v, %v; want none", m, err)
		}
	})
	t.Run("one of many succeeds", func(t *testing.T) {
		t.Parallel()
		again := open(t)
		tag := ""
		for epoch := range int64(3) {
			wins := race(8, func(n int) error {
				return again().SetContentMark(t.Context(), mark(string(rune('a'+n)), epoch+1), tag)
			})
			won := -1
			for n, err := range wins {
				switch {
				case err == nil && won < 0:
					won = n
				case err == nil:
					t.Errorf("epoch %d: both %d and %d succeeded, want one", epoch+1, won, n)
				default:
					wantCode(t, err, registry.CodeConflict)
				}
			}
			m, now, err := again().ContentMark(t.Context())
			must(t, err)
			if won < 0 || m.Catalog != string(rune('a'+won)) {
				t.Fatalf("epoch %d: %d succeeded, and the mark is %+v", epoch+1, won, m)
			}
			tag = now
		}
	})
}

// race calls do so often at the same moment, and gives what each said.
func race(times int, do func(n int) error) []error {
	errs := make([]error, times)
	start := make(chan struct{})
	var running sync.WaitGroup
	for n := range errs {
		running.Go(func() {
			<-start
			errs[n] = do(n)
		})
	}
	close(start)
	running.Wait()
	return errs
}

// Identified is a catalog that knows who it is.
type Identified interface {
	storage.CatalogIdentities
	storage.CollectionLock
}

// TestIdentity is the contract of [storage.CatalogIdentities] and [storage.CollectionLock].
// open returns a new catalog, as several processes open it.
func TestIdentity(t *testing.T, open func(t *testing.T) func() Identified) {
	t.Run("identity", func(t *testing.T) {
		t.Parallel()
		again := open(t)
		first, err := again().CatalogIdentity(t.Context())
		must(t, err)
		second, err := again().CatalogIdentity(t.Context())
		must(t, err)
		wantEqual(t, second, first)
		if first.ID == "" || first.Instance == "" || first.Storage != "" || first.Epoch != 0 || len(first.Origins) != 0 {
			t.Errorf("a new catalog is %+v, want an ID, an instance and no content", first)
		}
		other, err := open(t)().CatalogIdentity(t.Context())
		must(t, err)
		if other.ID == first.ID || other.Instance == first.Instance {
			t.Errorf("two catalogs are %+v and %+v, want different IDs and instances", first, other)
		}
	})
	t.Run("content", func(t *testing.T) {
		t.Parallel()
		again := open(t)
		before, err := again().CatalogIdentity(t.Context())
		must(t, err)
		after := before
		after.Storage, after.Epoch = "s3://models", 1
		must(t, again().RecordContent(t.Context(), before, after))
		wantCode(t, again().RecordContent(t.Context(), before, after), registry.CodeConflict)
		got, err := again().CatalogIdentity(t.Context())
		must(t, err)
		wantEqual(t, got, after)
		elsewhere := got
		elsewhere.ID = "00000000-0000-4000-8000-000000000000"
		wantCode(t, again().RecordContent(t.Context(), elsewhere, after), registry.CodeConflict)
	})
	t.Run("one collector at a time", func(t *testing.T) {
		t.Parallel()
		catalog := open(t)()
		turn, err := catalog.LockCollection(t.Context())
		must(t, err)
		must(t, turn.Held(t.Context()))
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		if next, err := catalog.LockCollection(ctx); err == nil {
			next.Release()
			t.Error("a second collector has its turn beside the first")
		}
		waiting := make(chan error, 1)
		go func() {
			next, err := catalog.LockCollection(t.Context())
			if err == nil {
				next.Release()
			}
			waiting <- err
		}()
		turn.Release()
		must(t, <-waiting)
	})
}

// TestReplicaPlace is the contract of [storage.ReplicaPlace] over a place without marks.
func TestReplicaPlace(t *testing.T, place storage.ReplicaPlace) {
	want := func(name string, want time.Time) {
		t.Helper()
		got, err := place.ReplicaMark(t.Context(), name)
		must(t, err)
		if !got.Equal(want) {
			t.Errorf("the mark of %s has the time %v, want %v", name, got, want)
		}
	}
	now := dusk().Add(123456 * time.Microsecond)
	want("a", time.Time{})
	must(t, place.DeleteReplicaMark(t.Context(), "a"))
	must(t, place.SetReplicaMark(t.Context(), "a", now))
	must(t, place.SetReplicaMark(t.Context(), "b", now))
	must(t, place.SetReplicaMark(t.Context(), "a", now.Add(time.Microsecond)))
	want("a", now.Add(time.Microsecond))
	want("b", now)
	must(t, place.DeleteReplicaMark(t.Context(), "a"))
	want("a", time.Time{})
	want("b", now)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if place.SetReplicaMark(ctx, "c", now) == nil {
		t.Error("a mark was stored after the context ended")
	}
}
