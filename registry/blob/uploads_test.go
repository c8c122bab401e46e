package blob_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/blob"
	"mlpromote.dev/mlpromote/registry/mem"
	"mlpromote.dev/mlpromote/registry/registrytest"
	"mlpromote.dev/mlpromote/registry/sqlite"
	"mlpromote.dev/mlpromote/registry/storage"
)

func TestUploads(t *testing.T) {
	t.Parallel()
	registrytest.TestUploads(t, func(t *testing.T) (storage.Uploads, storage.Blobs, registrytest.Damage) {
		path := filepath.Join(t.TempDir(), "not", "there", "yet")
		dir := blob.NewDir(path)
		return blob.NewUploads(dir, mem.New()), dir, registrytest.DamageFile(path)
	})
}

// Other values on the same folder and database are what another process has.
func TestReplicas(t *testing.T) {
	t.Parallel()
	registrytest.TestReplicas(t, func(t *testing.T) (replicas [2]registrytest.Replica) {
		path := t.TempDir()
		for i := range replicas {
			dir := blob.NewDir(path)
			replicas[i] = registrytest.Replica{Uploads: blob.NewUploads(dir, states(t, path)), Blobs: dir}
		}
		return replicas
	})
}

// states opens the database of a folder.
func states(t *testing.T, path string) *sqlite.DB {
	t.Helper()
	db, err := sqlite.Open(t.Context(), filepath.Join(path, "registry.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

var owner = storage.UploadOwner{Repository: "staging/a"}

func begin(t *testing.T, uploads *blob.Uploads, content string) string {
	t.Helper()
	id, err := uploads.Begin(t.Context(), owner)
	if err != nil {
		t.Fatal(err)
	}
	appendTo(t, uploads, id, 0, content)
	return id
}

func appendTo(t *testing.T, uploads *blob.Uploads, id string, offset int64, content string) {
	t.Helper()
	if _, err := uploads.Append(t.Context(), owner, id, offset, strings.NewReader(content)); err != nil {
		t.Fatal(err)
	}
}

func TestFinishLeavesOneFile(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	uploads := blob.NewUploads(blob.NewDir(path), mem.New())
	id := begin(t, uploads, "one ")
	appendTo(t, uploads, id, 4, "two")
	if n, err := uploads.Finish(t.Context(), owner, id, digest.FromString("one two")); n != 7 || err != nil {
		t.Fatalf("got %d, %v", n, err)
	}
	got := files(t, path)
	for name, mode := range got {
		if !strings.HasPrefix(name, "blobs/") || mode.Perm()&0o222 != 0 {
			t.Errorf("left is %s with mode %v, want one blob that nobody may write", name, mode)
		}
	}
	if len(got) != 1 {
		t.Errorf("left are %v, want one blob", got)
	}
}

// change writes into the only file under incoming/, as a process did that was killed
// before it could say so, or as a disk does that forgets.
func change(t *testing.T, path string, write func(*os.File) error) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(path, "incoming", "*"))
	if err != nil || len(names) != 1 {
		t.Fatalf("incoming are %v (%v), want one file", names, err)
	}
	f, err := os.OpenFile(names[0], os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(write(f), f.Close()); err != nil {
		t.Fatal(err)
	}
}

// Bytes behind those that were counted did not arrive.
func TestUploadsUncountedBytes(t *testing.T) {
	t.Parallel()
	for _, rest := range []string{"", "s"} {
		path := t.TempDir()
		dir := blob.NewDir(path)
		uploads := blob.NewUploads(dir, mem.New())
		id := begin(t, uploads, "content")
		change(t, path, func(f *os.File) error {
			_, err := f.WriteAt([]byte("behind it"), 7)
			return err
		})
		if n, err := uploads.Offset(t.Context(), owner, id); n != 7 || err != nil {
			t.Errorf("got offset %d, %v; want 7", n, err)
		}
		if rest != "" {
			appendTo(t, uploads, id, 7, rest)
		}
		d := digest.FromString("content" + rest)
		if _, err := uploads.Finish(t.Context(), owner, id, d); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(filepath.Join(path, "blobs", "sha256", d.Encoded()[:2], d.Encoded()))
		if err != nil || string(got) != "content"+rest {
			t.Errorf("got %q, %v", got, err)
		}
	}
}

// An upload whose bytes are gone has to be begun again, whatever is asked of it.
func TestUploadsLostBytes(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(*os.File) error{
		"cut off": func(f *os.File) error { return f.Truncate(3) },
		"gone":    func(f *os.File) error { return os.Remove(f.Name()) },
	} {
		for _, finish := range []bool{false, true} {
			path := t.TempDir()
			uploads := blob.NewUploads(blob.NewDir(path), mem.New())
			id := begin(t, uploads, "content")
			change(t, path, lose)
			var err error
			if finish {
				_, err = uploads.Finish(t.Context(), owner, id, digest.FromString("content"))
			} else {
				_, err = uploads.Append(t.Context(), owner, id, 7, strings.NewReader("!"))
			}
			if registry.CodeOf(err) != registry.CodeNotFound {
				t.Errorf("%s: got %v, want CodeNotFound", name, err)
			}
			if got := files(t, path); len(got) != 0 {
				t.Errorf("%s: left are %v, want nothing", name, got)
			}
		}
	}
}

// age makes all files under incoming/ so old that they are leftovers.
func age(t *testing.T, path string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(path, "incoming", "*"))
	then := time.Now().Add(-2 * blob.LeftoverAge)
	for _, file := range files {
		err = errors.Join(err, os.Chtimes(file, then, then))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// An upload that was abandoned is swept, file and record; one whose sender is
// slow is not.
func TestSweepUploads(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	db := mem.New()
	uploads := blob.NewUploads(blob.NewDir(path), db)
	old, slow := begin(t, uploads, "old"), begin(t, uploads, "slow")
	empty, err := uploads.Begin(t.Context(), owner)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := uploads.Sweep(t.Context()); n != 0 || err != nil {
		t.Errorf("swept %d, %v; want nothing yet", n, err)
	}
	db.Now = func() time.Time { return time.Now().Add(blob.LeftoverAge + time.Hour) }
	age(t, path)
	if err := os.Chtimes(filepath.Join(path, "incoming", slow), time.Now(), time.Now()); err != nil {
		t.Fatal(err)
	}
	if n, err := uploads.Sweep(t.Context()); n != 3 || err != nil { // two records, one file
		t.Errorf("swept %d, %v; want 3", n, err)
	}
	for _, id := range []string{old, empty} {
		if _, err := uploads.Offset(t.Context(), owner, id); registry.CodeOf(err) != registry.CodeNotFound {
			t.Errorf("a swept upload: got %v, want CodeNotFound", err)
		}
	}
	if n, err := uploads.Offset(t.Context(), owner, slow); n != 4 || err != nil {
		t.Errorf("the slow upload: got %d, %v", n, err)
	}
	if got := files(t, path); len(got) != 1 {
		t.Errorf("left are %v, want the file of the slow one", got)
	}
}
