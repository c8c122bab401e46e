package blob_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/blob"
	"mlpromote.dev/mlpromote/registry/registrytest"
)

func TestUploads(t *testing.T) {
	t.Parallel()
	registrytest.TestUploads(t, func(t *testing.T) (registry.Uploads, registry.Blobs) {
		dir := blob.NewDir(filepath.Join(t.TempDir(), "not", "there", "yet"))
		return blob.NewUploads(dir), dir
	})
}

var owner = registry.UploadOwner{Repository: "staging/a"}

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

// Another value on the same folder is what the process after this one is.
func TestUploadsOutliveTheirProcess(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	first, second := blob.NewUploads(blob.NewDir(path)), blob.NewUploads(blob.NewDir(path))
	id := begin(t, first, "one ")
	appendTo(t, second, id, 4, "two ")
	appendTo(t, first, id, 8, "three")
	d := digest.FromString("one two three")
	if n, err := second.Finish(t.Context(), owner, id, d); n != 13 || err != nil {
		t.Fatalf("got %d, %v", n, err)
	}
	for name, mode := range files(t, path) {
		if !strings.HasPrefix(name, "blobs/") || mode.Perm()&0o222 != 0 {
			t.Errorf("left is %s with mode %v, want one blob that nobody may write", name, mode)
		}
	}
}

// Bytes that got into the file behind the back of its writer are noticed.
func TestUploadsTamperedFile(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	uploads := blob.NewUploads(blob.NewDir(path))
	id := begin(t, uploads, "content")
	for name := range files(t, path) {
		f, err := os.OpenFile(filepath.Join(path, name), os.O_WRONLY|os.O_APPEND, 0)
		if err != nil {
			t.Fatal(err)
		}
		_, err = f.WriteString("!")
		if err := errors.Join(err, f.Close()); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := uploads.Finish(t.Context(), owner, id, digest.FromString("content")); registry.CodeOf(err) != registry.CodeDigest {
		t.Errorf("got %v, want CodeDigest", err)
	}
	if got := files(t, path); len(got) != 0 {
		t.Errorf("left are %v, want nothing", got)
	}
}

// An upload that nobody goes on with is swept, as other leftovers are.
func TestSweepUploads(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	dir := blob.NewDir(path)
	uploads := blob.NewUploads(dir)
	old, young := begin(t, uploads, "old"), begin(t, uploads, "young")
	err := filepath.WalkDir(path, func(p string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || !strings.HasPrefix(e.Name(), old) {
			return err
		}
		then := time.Now().Add(-blob.LeftoverAge - time.Hour)
		return os.Chtimes(p, then, then)
	})
	if err != nil {
		t.Fatal(err)
	}
	if n, err := dir.Sweep(t.Context(), time.Now()); n != 1 || err != nil {
		t.Errorf("swept %d, %v; want 1", n, err)
	}
	if _, err := uploads.Offset(t.Context(), owner, old); registry.CodeOf(err) != registry.CodeNotFound {
		t.Errorf("the old upload: got %v, want CodeNotFound", err)
	}
	if n, err := uploads.Offset(t.Context(), owner, young); n != 5 || err != nil {
		t.Errorf("the young upload: got %d, %v", n, err)
	}
}
