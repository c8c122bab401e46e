package backup_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"
	"golang.org/x/sys/unix"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/backup"
	"mlpromote.dev/mlpromote/registry/blob"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/sqlite"
	"mlpromote.dev/mlpromote/registry/storage"
)

// place is a data directory and a backup of it.
type place struct {
	t     *testing.T
	dir   string
	db    *sqlite.DB
	blobs storage.Blobs
	store *backup.Store
	from  backup.Source
}

func newPlace(t *testing.T) *place {
	t.Helper()
	root := t.TempDir()
	p := &place{t: t, dir: filepath.Join(root, "data")}
	path := filepath.Join(p.dir, "registry.db")
	if err := os.MkdirAll(filepath.Join(p.dir, "keys"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(p.dir, "keys", "a.pub"), []byte("public"), 0o600); err != nil {
		t.Fatal(err)
	}
	db, err := sqlite.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	p.db, p.blobs = db, blob.NewDir(p.dir)
	dest := filepath.Join(root, "backup")
	p.store = &backup.Store{Dir: dest, Blobs: blob.NewDir(dest), Open: openCopy}
	p.from = backup.Source{
		CopyCatalog: func(ctx context.Context, into string) error { return sqlite.Snapshot(ctx, path, into) },
		Blobs:       p.blobs, Dir: p.dir, Files: []string{"keys/a.pub"}, Now: time.Now,
	}
	return p
}

func openCopy(ctx context.Context, path string) (backup.Catalog, error) {
	return sqlite.Open(ctx, path)
}

// into restores into a directory.
func into(dir string) backup.Target {
	return backup.Target{Dir: dir, OpenBlobs: func(context.Context, string) (storage.RepairableBlobs, error) { return blob.NewDir(dir), nil }}
}

// push adds a blob to a repository, and a row to the history.
func (p *place) push(text string) registry.Digest {
	p.t.Helper()
	d := digest.FromString(text)
	_, event := p.db.Apply(p.t.Context(), storage.Change{Event: history.Event{Kind: history.EventAttach,
		Environment: "staging", Model: "m", Reason: text}})
	err := errors.Join(p.blobs.Put(p.t.Context(), d, int64(len(text)), strings.NewReader(text)),
		p.db.AddBlob(p.t.Context(), "staging/m", d, int64(len(text))), event)
	if err != nil {
		p.t.Error(err)
	}
	return d
}

// collect takes a blob away as a collector without any grace does.
func (p *place) collect(d registry.Digest) {
	if err := errors.Join(p.db.RemoveBlob(p.t.Context(), "staging/m", d), p.blobs.Delete(p.t.Context(), d)); err != nil {
		p.t.Error(err)
	}
}

func (p *place) make() backup.Snapshot {
	p.t.Helper()
	s, _, err := p.store.Make(p.t.Context(), p.from)
	if err != nil {
		p.t.Fatal(err)
	}
	return s
}

func (p *place) verify(s backup.Snapshot) error {
	return p.store.Verify(p.t.Context(), s, p.t.TempDir())
}

// restore restores into a new directory and looks at what is there.
func (p *place) restore(s backup.Snapshot) {
	p.t.Helper()
	dir := p.t.TempDir()
	if err := p.store.Restore(p.t.Context(), s, into(dir)); err != nil {
		p.t.Fatal(err)
	}
	db, err := sqlite.Open(p.t.Context(), filepath.Join(dir, "registry.db"))
	if err != nil {
		p.t.Fatal(err)
	}
	defer db.Close()
	held, err := db.Records(p.t.Context(), "staging/m")
	if err != nil || len(held) != s.Blobs {
		p.t.Errorf("restored are %d blobs, %v; want %d", len(held), err, s.Blobs)
	}
	for _, h := range held {
		text, err := os.ReadFile(filepath.Join(dir, "blobs", string(h.Digest.Algorithm()), h.Digest.Encoded()[:2], h.Digest.Encoded()))
		if err != nil || digest.FromBytes(text) != h.Digest {
			p.t.Errorf("blob %s: %v", h.Digest, err)
		}
	}
	if text, err := os.ReadFile(filepath.Join(dir, "keys", "a.pub")); string(text) != "public" {
		p.t.Errorf("the public key: %q, %v", text, err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*.restoring*")); len(left) > 0 {
		p.t.Errorf("left over: %v", left)
	}
}

// Snapshots that are made while others push and collect are whole, each of them.
func TestOnline(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	ctx, stop := context.WithCancel(t.Context())
	var working sync.WaitGroup
	for w := range 2 {
		working.Go(func() {
			var last registry.Digest
			for n := 0; n < 200 && ctx.Err() == nil; n++ { // bounded: a copy may never be as fast as who writes
				d := p.push(fmt.Sprintf("%d of %d", n, w))
				if n%8 == 0 {
					if last != "" {
						p.collect(last)
					}
					last = d
				}
			}
		})
	}
	made := 0
	for made < 4 {
		s, _, err := p.store.Make(t.Context(), p.from)
		if registry.HasCode(err, registry.CodeUnavailable) {
			continue // collected three times in a row; nothing counts then
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := p.verify(s); err != nil {
			t.Error(err)
		}
		made++
	}
	stop()
	working.Wait()
	p.restore(p.make())
}

// What is collected during the copy is in no later copy of the catalog.
func TestCollectedMeanwhile(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	kept, gone := p.push("kept"), p.push("gone")
	plain := p.from.CopyCatalog
	copies := 0
	p.from.CopyCatalog = func(ctx context.Context, path string) error {
		err := plain(ctx, path)
		if copies++; copies == 1 {
			p.collect(gone)
		}
		return err
	}
	if s := p.make(); copies != 2 || s.Blobs != 1 {
		t.Errorf("%d copies of the catalog, %d blobs; want 2 and 1", copies, s.Blobs)
	}
	all, err := p.store.List()
	if err != nil || len(all) != 1 {
		t.Errorf("snapshots: %v, %v", all, err)
	}

	// one that the catalog goes on to name is lost, and a backup must say so
	if err := p.blobs.Delete(t.Context(), kept); err != nil {
		t.Fatal(err)
	}
	_ = os.RemoveAll(filepath.Join(p.store.Dir, "blobs"))
	if _, _, err := p.store.Make(t.Context(), p.from); !registry.HasCode(err, registry.CodeDigest) || !strings.Contains(err.Error(), string(kept)) {
		t.Errorf("a backup of what has lost a blob: %v", err)
	}
	if all, _ := p.store.List(); len(all) != 1 {
		t.Errorf("%d snapshots count, want the first alone", len(all))
	}
}

// A snapshot that was broken off does not count, the one before does, and the next one
// takes up what was copied.
func TestBrokenOff(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.push("one")
	first := p.make()
	p.push("two")
	whole := p.from
	p.from.Files = []string{"keys/a.pub", "not there"}
	if _, _, err := p.store.Make(t.Context(), p.from); err == nil {
		t.Fatal("a backup of a missing file succeeded")
	}
	if s, err := p.store.Find(""); err != nil || s.Name != first.Name {
		t.Errorf("the newest is %s, %v; want %s", s.Name, err, first.Name)
	}
	p.from = whole
	second := p.make()
	if entries, _ := os.ReadDir(filepath.Join(p.store.Dir, "snapshots")); len(entries) != 2 {
		t.Errorf("%d folders of snapshots, want 2", len(entries))
	}
	p.restore(first)
	p.restore(second)
}

// Whatever is changed in a backup is found before anything counts as restored.
func TestDamage(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		damage func(p *place, s backup.Snapshot) error
		code   registry.Code
	}{
		"a blob is gone": {func(p *place, _ backup.Snapshot) error {
			return p.store.Blobs.Delete(p.t.Context(), digest.FromString("one"))
		}, registry.CodeDigest},
		"a blob is changed": {func(p *place, _ backup.Snapshot) error { return overwrite(p, "blobs/sha256/*/*", "eno") }, registry.CodeDigest},
		"a blob is shorter": {func(p *place, _ backup.Snapshot) error { return overwrite(p, "blobs/sha256/*/*", "on") }, registry.CodeDigest},
		"a public key is exchanged": {func(p *place, _ backup.Snapshot) error {
			return overwrite(p, "snapshots/*/files/keys/a.pub", "public key of Mallory")
		}, registry.CodeDigest},
		"the catalog is changed": {func(p *place, _ backup.Snapshot) error { return overwrite(p, "snapshots/*/registry.db", "x") }, registry.CodeDigest},
		"the list is changed":    {func(p *place, _ backup.Snapshot) error { return overwrite(p, "snapshots/*/content", "") }, registry.CodeDigest},
		"the description is no JSON": {func(p *place, _ backup.Snapshot) error {
			return overwrite(p, "snapshots/*/snapshot.json", "{")
		}, registry.CodeTrust},
		"the description is of a later format": {func(p *place, _ backup.Snapshot) error {
			return overwrite(p, "snapshots/*/snapshot.json", `{"format": "https://mlpromote.dev/backup/v2"}`)
		}, registry.CodeTrust},
		"a file is outside": {func(p *place, s backup.Snapshot) error {
			return overwrite(p, "snapshots/*/snapshot.json", `{"format": "`+backup.Format+`", "name": "`+s.Name+`", "files": [{"path": "../../x"}]}`)
		}, registry.CodeTrust},
		"a file of another kind": {func(p *place, s backup.Snapshot) error {
			return overwrite(p, "snapshots/*/snapshot.json", `{"format": "`+backup.Format+`", "name": "`+s.Name+`", "files": [{"path": "files/registry.db"}]}`)
		}, registry.CodeTrust},
		"a file is there twice": {func(p *place, s backup.Snapshot) error {
			return overwrite(p, "snapshots/*/snapshot.json",
				`{"format": "`+backup.Format+`", "name": "`+s.Name+`", "files": [{"path": "content"}, {"path": "content"}]}`)
		}, registry.CodeTrust},
		"a file is a link": {func(p *place, _ backup.Snapshot) error {
			return replace(p, "snapshots/*/files/keys/a.pub", func(path string) error { return os.Symlink("/dev/zero", path) })
		}, registry.CodeTrust},
		"a file is a pipe": {func(p *place, _ backup.Snapshot) error {
			return replace(p, "snapshots/*/registry.db", func(path string) error { return unix.Mkfifo(path, 0o600) })
		}, registry.CodeTrust},
		"the description is a pipe": {func(p *place, _ backup.Snapshot) error {
			return replace(p, "snapshots/*/snapshot.json", func(path string) error { return unix.Mkfifo(path, 0o600) })
		}, registry.CodeTrust},
		"a blob is a pipe": {func(p *place, _ backup.Snapshot) error {
			return replace(p, "blobs/sha256/*/*", func(path string) error { return unix.Mkfifo(path, 0o600) })
		}, registry.CodeInternal},
		"a row of the history is claimed": {func(p *place, s backup.Snapshot) error {
			text, err := os.ReadFile(filepath.Join(p.store.Dir, "snapshots", s.Name, "snapshot.json"))
			return errors.Join(err, overwrite(p, "snapshots/*/snapshot.json", strings.Replace(string(text), `"events": 1`, `"events": 2`, 1)))
		}, registry.CodeTrust},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			p.push("one")
			s := p.make()
			if err := errors.Join(p.verify(s), c.damage(p, s)); err != nil {
				t.Fatal(err)
			}
			found, err := p.store.Find("")
			if err == nil {
				err = p.verify(found)
				dir := t.TempDir()
				if restored := p.store.Restore(t.Context(), found, into(dir)); !registry.HasCode(restored, c.code) {
					t.Errorf("restored: %v, want %s", restored, c.code)
				}
				if _, err := os.Stat(filepath.Join(dir, "registry.db")); err == nil {
					t.Error("the catalog is there")
				}
			}
			if !registry.HasCode(err, c.code) {
				t.Errorf("verified: %v, want %s", err, c.code)
			}
		})
	}
}

// replace puts something else in the place of a file.
func replace(p *place, pattern string, by func(path string) error) error {
	found, err := filepath.Glob(filepath.Join(p.store.Dir, filepath.FromSlash(pattern)))
	if len(found) != 1 {
		return fmt.Errorf("%s: %v", pattern, found)
	}
	return errors.Join(err, os.Remove(found[0]), by(found[0]))
}

// A journal that somebody put beside the catalog would change it after it was checked.
func TestNoJournalIsRestored(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.push("one")
	s := p.make()
	beside, err := sqlite.Open(t.Context(), filepath.Join(p.store.Dir, "snapshots", s.Name, "registry.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer beside.Close()
	if _, err := beside.Apply(t.Context(), storage.Change{Event: history.Event{Kind: history.EventAttach,
		Environment: "staging", Model: "m", Reason: "forged"}}); err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(p.store.Dir, "snapshots", s.Name)
	journal, err := os.ReadFile(filepath.Join(folder, "registry.db-wal"))
	if err != nil || len(journal) == 0 {
		t.Fatalf("no journal: %v", err)
	}
	s.Files = append(s.Files, backup.File{Path: "files/registry.db-wal", Size: int64(len(journal)), Digest: digest.FromBytes(journal)})
	text, err := json.Marshal(s)
	err = errors.Join(err, os.WriteFile(filepath.Join(folder, "files", "registry.db-wal"), journal, 0o600),
		overwrite(p, "snapshots/*/snapshot.json", string(text)))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	found, err := p.store.Find("")
	if err == nil {
		err = p.store.Restore(t.Context(), found, into(dir))
	}
	if !registry.HasCode(err, registry.CodeTrust) {
		t.Errorf("restored with a journal: error %v, want CodeTrust", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "registry.db-wal")); err == nil {
		t.Error("the journal is in the data directory")
	}
}

func overwrite(p *place, pattern, text string) error {
	found, err := filepath.Glob(filepath.Join(p.store.Dir, filepath.FromSlash(pattern)))
	if len(found) != 1 {
		return fmt.Errorf("%s: %v", pattern, found)
	}
	return errors.Join(err, os.Chmod(found[0], 0o600), os.WriteFile(found[0], []byte(text), 0o600))
}

// Restoring again after it was broken off takes nothing on trust that is there.
func TestRestoreAgain(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	d := p.push("one")
	s := p.make()
	dir := t.TempDir()
	half := filepath.Join(dir, "blobs", "sha256", d.Encoded()[:2])
	if err := errors.Join(os.MkdirAll(half, 0o755), os.WriteFile(filepath.Join(half, d.Encoded()), []byte("eno"), 0o600)); err != nil {
		t.Fatal(err)
	}
	if err := p.store.Restore(t.Context(), s, into(dir)); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(filepath.Join(half, d.Encoded())); string(text) != "one" {
		t.Errorf("the blob is %q, %v", text, err)
	}
}

// What kept snapshots name stays, and nothing else.
func TestPrune(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	old := p.push("old")
	p.push("both")
	p.make()
	p.collect(old)
	p.push("new")
	middle, newest := p.make(), p.make()
	pruned, err := p.store.Prune(t.Context(), 2)
	if err != nil || len(pruned.Snapshots) != 1 || pruned.Blobs != 1 {
		t.Errorf("pruned %+v, %v", pruned, err)
	}
	if err := errors.Join(p.verify(middle), p.verify(newest)); err != nil {
		t.Error(err)
	}
	if pruned, err := p.store.Prune(t.Context(), 0); err != nil || len(pruned.Snapshots) != 1 || pruned.Blobs != 0 {
		t.Errorf("pruned %+v, %v; the newest must stay", pruned, err)
	}
	if all, err := p.store.List(); err != nil || len(all) != 1 || all[0].Name != newest.Name {
		t.Errorf("left are %v, %v", all, err)
	}
}
