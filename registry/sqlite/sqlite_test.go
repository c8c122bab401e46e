package sqlite_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/registrytest"
	"mlpromote.dev/mlpromote/registry/sqlite"
	"mlpromote.dev/mlpromote/registry/storage"
)

func open(t testing.TB, path string) *sqlite.DB {
	t.Helper()
	db, err := sqlite.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

// clocked is a database with a clock that a test moves.
func clocked[T any](t *testing.T) (T, func(time.Duration)) {
	t.Helper()
	clock, db := registrytest.NewClock(), open(t, filepath.Join(t.TempDir(), "catalog.db"))
	db.Now = clock.Now
	store, ok := any(db).(T)
	if !ok {
		t.Fatalf("%T is not a %T", db, store)
	}
	return store, clock.Pass
}

func TestStore(t *testing.T) {
	t.Parallel()
	registrytest.TestStore(t, func(t *testing.T) registrytest.Store {
		return open(t, filepath.Join(t.TempDir(), "catalog.db"))
	})
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
	registrytest.TestConfigurations(t, func(t *testing.T) registrytest.Configured {
		return open(t, filepath.Join(t.TempDir(), "catalog.db"))
	})
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
	registrytest.TestTables(t, func(t *testing.T) registrytest.Tables {
		db := open(t, filepath.Join(t.TempDir(), "catalog.db"))
		return registrytest.Tables{NodeTypes: db.NodeTypes(), Runtimes: db.Runtimes(), NodeReports: db.NodeReports()}
	})
}

// Handles of their own on one file are what processes are to each other.
func TestHandlesRace(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "catalog.db")
	registrytest.Race(t, open(t, path), open(t, path))
}

// Several processes may find no database and all make it.
func TestOpenRace(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "catalog.db")
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			db, err := sqlite.Open(t.Context(), path)
			if err != nil {
				t.Error(err)
				return
			}
			defer db.Close()
			if _, err := db.Apply(t.Context(), change(fmt.Sprint(i))); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

// What was written is there after closing and opening, whatever the path looks like.
func TestReopen(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a b?mode=memory#%41&ü.db")
	first, err := sqlite.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	publish := change("1.0.0")
	publish.DecisionBasis, publish.Move = registrytest.HeadAlone("prod", "a", ""), &storage.HeadMove{}
	event, err := first.Apply(t.Context(), publish)
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Error(err)
	}
	head, err := open(t, path).Head(t.Context(), "prod", "a")
	if err != nil || head.Release != event.Release {
		t.Errorf("got %v, %v", head, err)
	}
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	junk := filepath.Join(folder, "junk.db")
	if err := os.WriteFile(junk, []byte(strings.Repeat("this is no database. ", 100)), 0o644); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]struct {
		code registry.Code
		says string
	}{
		junk:                                    {registry.CodeInternal, "restore it from a backup"},
		folder:                                  {registry.CodeUnavailable, "must exist and be writable"},
		filepath.Join(folder, "no", "where.db"): {registry.CodeUnavailable, "must exist and be writable"},
	} {
		db, err := sqlite.Open(t.Context(), path)
		if db != nil || registry.CodeOf(err) != want.code || !strings.Contains(fmt.Sprint(err), want.says) {
			t.Errorf("%s: got %v (%s), want %q (%s)", path, err, registry.CodeOf(err), want.says, want.code)
		}
	}
}

func TestResetDerived(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	db := open(t, filepath.Join(t.TempDir(), "catalog.db"))
	subject := digest.FromString("subject")
	m := storage.Manifest{Digest: digest.FromString("m"), MediaType: "type", Size: 1}
	m.Derived = artifact.Derived{ArtifactType: "artifact", Subject: subject, Annotations: map[string]string{"a": "b"}}
	if err := db.PutManifest(ctx, "staging/a", m); err != nil {
		t.Fatal(err)
	}
	if err := db.SetTag(ctx, "staging/a", "1.0.0", m.Digest); err != nil {
		t.Fatal(err)
	}
	if err := db.ResetDerived(ctx); err != nil {
		t.Fatal(err)
	}
	bare, err := db.Manifest(ctx, "staging/a", m.Digest)
	if err != nil || bare.MediaType != "type" || bare.Size != 1 || bare.Derived.ArtifactType != "" {
		t.Errorf("after the reset: got %+v, %v; want the facts alone", bare, err)
	}
	if _, err := db.Tag(ctx, "staging/a", "1.0.0"); err != nil {
		t.Errorf("the tag is a fact: %v", err)
	}
	for rm, err := range db.AllManifests(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		rm.Manifest.Derived = m.Derived
		if err := db.PutManifest(ctx, rm.Repository, rm.Manifest); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := db.Referrers(ctx, "staging/a", subject, "artifact", ""); err != nil || len(got) != 1 {
		t.Errorf("after recording again: got %v, %v", got, err)
	}
}

func change(release string) storage.Change {
	return storage.Change{
		Event: history.Event{
			Time: time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC), Kind: history.EventPublish,
			Environment: "prod", Model: "a", Version: release, Release: digest.FromString(release),
		},
	}
}

// BenchmarkApply makes durable commits, each of tags, head and history.
func BenchmarkApply(b *testing.B) {
	db := open(b, filepath.Join(b.TempDir(), "catalog.db"))
	var head registry.Digest
	for n := 0; b.Loop(); n++ {
		c := change(fmt.Sprint(n))
		c.DecisionBasis, c.Move = registrytest.HeadAlone("prod", "a", head), &storage.HeadMove{}
		c.Tags = []storage.TagMove{{Repository: "prod/a", Tag: artifact.HeadTag, Digest: c.Event.Release}}
		event, err := db.Apply(b.Context(), c)
		if err != nil {
			b.Fatal(err)
		}
		head = event.Release
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "commits/s")
}

// BenchmarkOpen opens and closes a database that is up to date.
func BenchmarkOpen(b *testing.B) {
	path := filepath.Join(b.TempDir(), "catalog.db")
	open(b, path)
	for b.Loop() {
		db, err := sqlite.Open(b.Context(), path)
		if err != nil {
			b.Fatal(err)
		}
		if err := db.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

func TestIdentity(t *testing.T) {
	t.Parallel()
	registrytest.TestIdentity(t, func(t *testing.T) func() registrytest.Identified {
		path := filepath.Join(t.TempDir(), "catalog.db")
		db := open(t, path)
		first := true
		return func() registrytest.Identified {
			if first {
				first = false
				return db
			}
			return open(t, path)
		}
	})
}
