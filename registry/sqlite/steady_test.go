package sqlite

import (
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/storage"
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

// Both processes read what either of them wrote last, whatever they remember, and also when
// connections were closed and opened in between.
func TestSteady(t *testing.T) {
	t.Parallel()
	dbs := twoOf(t, filepath.Join(t.TempDir(), "registry.db"))
	digests := []registry.Digest{"", digest.FromString("a"), digest.FromString("b")}
	for _, d := range digests[1:] {
		if err := dbs[0].PutManifest(t.Context(), "staging/a", storage.Manifest{Digest: d, Size: 1, MediaType: "x/y"}); err != nil {
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

// Both processes see which node types and runtimes either of them stored or deleted last.
func TestSteadyDocuments(t *testing.T) {
	t.Parallel()
	dbs := twoOf(t, filepath.Join(t.TempDir(), "registry.db"))
	random := rand.New(rand.NewPCG(1, 2))
	const name = "onnxruntime:1.30.0"
	want := "" // no document
	for step := range 60 {
		writer := dbs[random.IntN(2)].Runtimes()
		var err error
		if next := []string{"", "1.30.0", "1.31.0"}[random.IntN(3)]; next != "" {
			want, err = next, writer.Put(t.Context(), name, artifact.Runtime{V: 1, Name: next})
		} else if want != "" {
			want, err = "", writer.Delete(t.Context(), name)
		}
		if err != nil {
			t.Fatal(err)
		}
		for range 2 { // what is read, and then what is remembered
			for i, db := range dbs {
				got, err := db.Runtimes().Get(storage.AtOneInstant(t.Context()), name)
				if got.Name != want || registry.HasCode(err, registry.CodeNotFound) != (want == "") {
					t.Fatalf("step %d, reader %d: the runtime is %q (%v), want %q", step, i, got.Name, err, want)
				}
			}
		}
	}
}

// Requests cannot fill the memory with names or documents of any length.
func TestSteadyDocumentsAreBounded(t *testing.T) {
	t.Parallel()
	db := openTest(t)
	long := strings.Repeat("n", maxSteadyName+1)
	if err := db.Runtimes().Put(t.Context(), "large", artifact.Runtime{V: 1, Name: strings.Repeat("n", steadyBytes)}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{long, "large", "unknown"} {
		_, _ = db.Runtimes().Get(t.Context(), name) // only what is remembered counts
	}
	if got := len(db.steady.known); got != 1 {
		t.Errorf("%d rows are remembered, want 1, that there is no document of a short name", got)
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

// A row is read again only after a commit.
func TestSteadyRemembers(t *testing.T) {
	t.Parallel()
	dbs := twoOf(t, filepath.Join(t.TempDir(), "registry.db"))
	reads := 0
	ask := func(want int) {
		t.Helper()
		for range 3 {
			if _, err := recall(t.Context(), dbs[0].steady, "key", func() (int, error) { reads++; return reads, nil }); err != nil {
				t.Fatal(err)
			}
		}
		if reads != want {
			t.Errorf("it was read %d times, want %d", reads, want)
		}
	}
	ask(1)
	if err := dbs[1].PutManifest(t.Context(), "staging/a", storage.Manifest{Digest: digest.FromString("a"), Size: 1, MediaType: "x/y"}); err != nil {
		t.Fatal(err)
	}
	ask(2)
}

// Right after a commit of the same process nothing is remembered, nor asked for. A process that has
// not committed since remembers again.
func TestSteadyAfterOwnCommits(t *testing.T) {
	t.Parallel()
	db := openTest(t)
	reads, pushes := 0, 0
	ask := func() {
		t.Helper()
		if _, err := recall(storage.AtOneInstant(t.Context()), db.steady, "key", func() (int, error) { reads++; return reads, nil }); err != nil {
			t.Fatal(err)
		}
	}
	push := func() {
		t.Helper()
		pushes++
		if err := db.AddBlob(t.Context(), "staging/a", digest.FromString(strconv.Itoa(pushes)), 1); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 { // reads, remembers, recalls
		push()
		ask()
		ask()
		ask()
	}
	if reads != 4 {
		t.Errorf("it was read %d times, want 4", reads)
	}
	for range 3 {
		push()
		ask()
	}
	if reads != 7 {
		t.Errorf("between commits it was read %d times, want 7", reads)
	}
}

// Every resolve asks whether anything was restricted, and mostly nothing was. That is remembered too.
func TestSteadyRemembersThatNothingHappened(t *testing.T) {
	t.Parallel()
	db := openTest(t)
	for range 2 {
		if hash, err := db.LastEvent(t.Context(), "prod", ""); hash != "" || err != nil {
			t.Fatalf("the last event is %q (%v), want no event", hash, err)
		}
	}
	if len(db.steady.known) != 1 {
		t.Errorf("%d rows are remembered, want 1: that there is no event", len(db.steady.known))
	}
}

// The record that is given is the caller's own.
func TestSteadyGivesCopies(t *testing.T) {
	t.Parallel()
	db := openTest(t)
	m := storage.Manifest{Digest: digest.FromString("a"), Size: 1, MediaType: "x/y",
		Derived: artifact.Derived{Annotations: map[string]string{"a": "b"}}}
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

// A new connection counts from the beginning, so that its numbers say nothing about the old one's.
func TestSteadyForgetsWithConnection(t *testing.T) {
	t.Parallel()
	db := openTest(t)
	for want := 1; want <= 3; want++ {
		reads := 0
		for range 2 {
			got, err := recall(t.Context(), db.steady, "key", func() (int, error) { reads++; return want, nil })
			if got != want || err != nil {
				t.Errorf("on connection %d: got what connection %d read (%v)", want, got, err)
			}
		}
		if reads != 1 {
			t.Errorf("on connection %d: read %d times, want 1", want, reads)
		}
		db.steady.versions.mu.Lock()
		if err := db.steady.versions.release(); err != nil {
			t.Error(err)
		}
		db.steady.versions.pool.SetMaxIdleConns(want % 2) // the next connection is a new one, or the same
		db.steady.versions.mu.Unlock()
	}
}

// SQLite removes the files beside a database with the last connection.
func TestCloseEndsEveryConnection(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "registry.db")
	db, err := Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := db.ListTokens(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(path + "-shm"); err != nil {
		t.Fatalf("an open database has no index of its log: %v", err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path + "-shm"); err == nil {
		t.Error("a connection is still open after Close")
	}
	if _, err := db.ListTokens(t.Context()); err == nil {
		t.Error("a closed database answers")
	}
}

// BenchmarkTag reads a tag from memory.
func BenchmarkTag(b *testing.B) {
	db, err := Open(b.Context(), filepath.Join(b.TempDir(), "registry.db"))
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	if err := db.PutManifest(b.Context(), "staging/a", storage.Manifest{Digest: digest.FromString("a"), Size: 1, MediaType: "x/y"}, "tag"); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := db.Tag(b.Context(), "staging/a", "tag"); err != nil {
			b.Fatal(err)
		}
	}
}

// Reads at one instant see at least the commits before the first of them, and never go back to an
// older state. Other reads see every commit.
func TestReadsAtOneInstant(t *testing.T) {
	t.Parallel()
	dbs := twoOf(t, filepath.Join(t.TempDir(), "registry.db"))
	a, b := digest.FromString("a"), digest.FromString("b")
	for _, d := range []registry.Digest{a, b} {
		if err := dbs[0].PutManifest(t.Context(), "staging/a", storage.Manifest{Digest: d, Size: 1, MediaType: "x/y"}, string(d[7:17])); err != nil {
			t.Fatal(err)
		}
	}
	tag := func(ctx context.Context, name string) registry.Digest {
		t.Helper()
		d, err := dbs[0].Tag(ctx, "staging/a", name)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	set := func(name string, d registry.Digest) {
		t.Helper()
		if err := dbs[1].SetTag(t.Context(), "staging/a", name, d); err != nil {
			t.Fatal(err)
		}
	}
	set("one", a)
	set("two", a)
	tag(t.Context(), "one") // remembered
	before := storage.AtOneInstant(t.Context())
	if got := tag(before, "one"); got != a {
		t.Errorf("at the first instant: tag one is %s, want %s", got, a)
	}
	set("one", b)
	set("two", b)
	if got := tag(before, "two"); got != b { // not remembered, so read now
		t.Errorf("at the first instant: tag two is %s, want %s", got, b)
	}
	if got := tag(before, "one"); got != b {
		t.Errorf("after a newer read at the first instant: tag one is %s, want %s, not the older state", got, b)
	}
	for name, ctx := range map[string]context.Context{"now": t.Context(), "at a later instant": storage.AtOneInstant(t.Context())} {
		for _, tagName := range []string{"one", "two"} {
			if got := tag(ctx, tagName); got != b {
				t.Errorf("%s: tag %s is %s, want %s", name, tagName, got, b)
			}
		}
	}
}

// Both processes see at once that either of them revoked a token.
func TestSteadyTokens(t *testing.T) {
	t.Parallel()
	dbs := twoOf(t, filepath.Join(t.TempDir(), "registry.db"))
	at := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for step, revoker := range []*DB{dbs[0], dbs[1]} {
		id := string(rune('a' + step))
		for i, db := range dbs {
			if _, err := db.FindToken(t.Context(), id); !registry.HasCode(err, registry.CodeNotFound) {
				t.Fatalf("reader %d, before there is token %s: error %v, want CodeNotFound", i, id, err)
			}
		}
		token := storage.Token{ID: id, Name: "ci-" + id, Hash: [32]byte{1}, Created: at, Grants: []storage.Grant{
			{Permissions: []storage.Permission{storage.PermissionRead}, Environment: "**", Model: "**"}}}
		if err := dbs[0].CreateToken(t.Context(), token); err != nil {
			t.Fatal(err)
		}
		check := func(when string, want time.Time) {
			t.Helper()
			for range 2 { // what is read, and then what is remembered
				for i, db := range dbs {
					if got, err := db.FindToken(storage.AtOneInstant(t.Context()), id); err != nil || !got.Revoked.Equal(want) {
						t.Errorf("reader %d, %s: revoked %v (%v), want %v", i, when, got.Revoked, err, want)
					}
				}
			}
		}
		check("a new token", time.Time{})
		if err := revoker.RevokeToken(t.Context(), id, at.Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
		check("after it was revoked", at.Add(time.Hour))
	}
}
