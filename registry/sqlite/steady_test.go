package sqlite

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry"
)

// twoOf opens one database twice, as two processes do.
func twoOf(t testing.TB, path string) [2]*DB {
	t.Helper()
	var two [2]*DB
	for i := range two {
		db, err := Open(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.Close() })
		two[i] = db
	}
	return two
}

// Whoever wrote last, everybody reads it, from whatever he remembers: also when all
// connections were closed meanwhile, which removes the WAL index and makes it anew.
func TestSteady(t *testing.T) {
	t.Parallel()
	dbs := twoOf(t, filepath.Join(t.TempDir(), "registry.db"))
	digests := []registry.Digest{"", digest.FromString("a"), digest.FromString("b")}
	for _, d := range digests[1:] {
		if err := dbs[0].PutManifest(t.Context(), "staging/a", registry.Manifest{Digest: d, Size: 1, MediaType: "x/y"}); err != nil {
			t.Fatal(err)
		}
	}
	random := rand.New(rand.NewPCG(1, 2))
	want := registry.Digest("")
	for step := range 60 {
		kept := 2 * random.IntN(2)
		for _, db := range dbs {
			db.reader.SetMaxIdleConns(kept) // none closes those that are open
			db.writer.SetMaxIdleConns(kept)
		}
		next := digests[random.IntN(len(digests))]
		move(t, dbs[random.IntN(2)], want, next)
		want = next
		for range 2 { // what is read, and then what is remembered
			for i, db := range dbs {
				if got, err := db.Tag(t.Context(), "staging/a", "tag"); got != want || (err != nil) != (want == "") {
					t.Fatalf("step %d, reader %d: the tag is %q (%v), want %q", step, i, got, err, want)
				}
			}
		}
	}
}

// move sets or deletes the tag.
func move(t *testing.T, db *DB, from, to registry.Digest) {
	t.Helper()
	var err error
	switch {
	case to != "":
		err = db.SetTag(t.Context(), "staging/a", "tag", to)
	case from != "":
		err = db.DeleteTag(t.Context(), "staging/a", "tag")
	}
	if err != nil {
		t.Fatal(err)
	}
}

// What is asked for again is not read again, until somebody commits.
func TestSteadyRemembers(t *testing.T) {
	t.Parallel()
	dbs := twoOf(t, filepath.Join(t.TempDir(), "registry.db"))
	reads := 0
	ask := func(want int) {
		t.Helper()
		for range 3 {
			if _, err := recall(dbs[0].steady, "key", func() (int, error) { reads++; return reads, nil }); err != nil {
				t.Fatal(err)
			}
		}
		if reads != want {
			t.Errorf("it was read %d times, want %d", reads, want)
		}
	}
	ask(1)
	if err := dbs[1].PutManifest(t.Context(), "staging/a", registry.Manifest{Digest: digest.FromString("a"), Size: 1, MediaType: "x/y"}); err != nil {
		t.Fatal(err)
	}
	ask(2)
}

// The record that is given is the caller's own.
func TestSteadyGivesCopies(t *testing.T) {
	t.Parallel()
	db := openTest(t)
	m := registry.Manifest{Digest: digest.FromString("a"), Size: 1, MediaType: "x/y", Derived: registry.Derived{Annotations: map[string]string{"a": "b"}}}
	if err := db.PutManifest(t.Context(), "staging/a", m); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		got, err := db.Manifest(t.Context(), "staging/a", m.Digest)
		if err != nil || got.Derived.Annotations["a"] != "b" {
			t.Fatalf("got %v, %v", got, err)
		}
		got.Derived.Annotations["a"] = "changed"
	}
}

// Files of databases that are gone are closed.
func TestWALIndexesAreClosed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for n := range 3 {
		path := filepath.Join(dir, fmt.Sprint(n))
		db, err := Open(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := db.steady.index.mark(); !ok {
			t.Error("an open database has no mark")
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(path + "-shm"); err == nil {
			t.Fatal("the index is still there")
		}
		if _, ok := db.steady.index.mark(); ok {
			t.Error("a closed database has a mark")
		}
	}
	indexes.open(filepath.Join(dir, "nowhere"))
	indexes.mu.Lock()
	defer indexes.mu.Unlock()
	for path := range indexes.files {
		if filepath.Dir(path) == dir {
			t.Errorf("%s is still open", path)
		}
	}
}

// A database closes the index of another that is gone, while that one still reads it. The
// race detector is the judge.
func TestWALIndexIsClosedWhileRead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for n := range 5 {
		path := filepath.Join(dir, fmt.Sprint(n))
		db, err := Open(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		index := db.steady.index
		if _, ok := index.mark(); !ok {
			t.Error("an open database has no mark")
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		var both sync.WaitGroup
		both.Go(func() { index.mark() })
		both.Go(func() { indexes.open(filepath.Join(dir, "nowhere")) })
		both.Wait()
		again, err := Open(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		index.mark() // may see that the old one is gone
		if _, ok := index.mark(); !ok {
			t.Error("a database that was opened again has no mark")
		}
		if err := again.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
