package blob_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/blob"
	"mlpromote.dev/mlpromote/registry/registrytest"
	"mlpromote.dev/mlpromote/registry/storage"
)

func TestDir(t *testing.T) {
	t.Parallel()
	registrytest.TestBlobs(t, func(t *testing.T) (storage.RepairableBlobs, registrytest.Damage) {
		path := filepath.Join(t.TempDir(), "not", "there", "yet")
		return blob.NewDir(path), registrytest.DamageFile(path)
	})
}

// files lists the files under path, with '/', by name.
func files(t *testing.T, path string) map[string]fs.FileMode {
	t.Helper()
	found := make(map[string]fs.FileMode)
	err := filepath.WalkDir(path, func(p string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		name, err := filepath.Rel(path, p)
		found[filepath.ToSlash(name)] = info.Mode()
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func put(t *testing.T, dir *blob.Dir, content string) registry.Digest { //nolint:unparam // what is stored stands where it is stored
	t.Helper()
	d := digest.FromString(content)
	if err := dir.Put(t.Context(), d, int64(len(content)), strings.NewReader(content)); err != nil {
		t.Fatal(err)
	}
	return d
}

func TestLayout(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	hex := put(t, blob.NewDir(path), "content").Encoded()
	got := files(t, path)
	mode, ok := got["blobs/sha256/"+hex[:2]+"/"+hex]
	if !ok || len(got) != 1 || mode.Perm()&0o222 != 0 {
		t.Errorf("got files %v, want only blobs/sha256/%s/%s, which nobody may write", got, hex[:2], hex)
	}
}

// Nothing is made by reading, and nothing is left by a Put that fails.
func TestLeavesNothing(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "data")
	dir := blob.NewDir(path)
	for range dir.Digests(t.Context()) {
		t.Error("a digest in a folder that does not exist")
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("reading made %s", path)
	}
	d := digest.FromString("content")
	for _, r := range []io.Reader{strings.NewReader("conten"), strings.NewReader("CONTENT"), iotest.ErrReader(errors.New("lost"))} {
		if err := dir.Put(t.Context(), d, 7, r); err == nil {
			t.Error("a Put of something else succeeded")
		}
	}
	if got := files(t, path); len(got) != 0 {
		t.Errorf("left behind: %v", got)
	}
}

// A file of the wrong size at the blob's place is no blob: Put replaces it.
func TestPutRepairs(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	dir := blob.NewDir(path)
	d := put(t, dir, "content")
	place := filepath.Join(path, "blobs", "sha256", d.Encoded()[:2], d.Encoded())
	if err := errors.Join(os.Remove(place), os.WriteFile(place, []byte("con"), 0o644)); err != nil {
		t.Fatal(err)
	}
	put(t, dir, "content")
	if got, err := os.ReadFile(place); err != nil || string(got) != "content" {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestDigestsSkipsStrangers(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	dir := blob.NewDir(path)
	d := put(t, dir, "content")
	top := filepath.Join(path, "blobs", "sha256")
	elsewhere := filepath.Join(top, "zz")
	err := errors.Join(
		os.WriteFile(filepath.Join(top, "README"), nil, 0o644),
		os.WriteFile(filepath.Join(top, d.Encoded()[:2], ".hidden"), nil, 0o644),
		os.Mkdir(elsewhere, 0o755),
		os.WriteFile(filepath.Join(elsewhere, d.Encoded()), nil, 0o644),
	)
	if err != nil {
		t.Fatal(err)
	}
	var got []registry.Digest
	for d, err := range dir.Digests(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, d)
	}
	if len(got) != 1 || got[0] != d {
		t.Errorf("got %v, want %s", got, d)
	}
}

// Two stores on one folder are what two processes are.
func TestTwoStores(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	var wg sync.WaitGroup
	for range 4 {
		dir := blob.NewDir(path)
		wg.Go(func() {
			for i := range 20 {
				content := fmt.Sprint("content ", i)
				if err := dir.Put(t.Context(), digest.FromString(content), int64(len(content)), strings.NewReader(content)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if got := files(t, path); len(got) != 20 {
		t.Errorf("%d files, want 20", len(got))
	}
}

func TestSweep(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	dir := blob.NewDir(path)
	if n, err := dir.Sweep(t.Context()); n != 0 || err != nil {
		t.Errorf("empty: got %d, %v", n, err)
	}
	put(t, dir, "content")
	now := time.Now()
	for name, age := range map[string]time.Duration{"DEAD": blob.LeftoverAge + time.Minute, "ALIVE": blob.LeftoverAge - time.Hour} {
		file := filepath.Join(path, "incoming", name)
		if err := errors.Join(os.WriteFile(file, nil, 0o444), os.Chtimes(file, now, now.Add(-age))); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := dir.Sweep(t.Context()); n != 1 || err != nil {
		t.Errorf("got %d, %v; want 1 removed", n, err)
	}
	got := files(t, path)
	if _, ok := got["incoming/ALIVE"]; !ok || len(got) != 2 {
		t.Errorf("left are %v, want the blob and incoming/ALIVE", got)
	}
}

// BenchmarkPut stores 64 MiB. Compare with BenchmarkBare, the least that it can cost.
func BenchmarkPut(b *testing.B) {
	content := benchContent()
	b.SetBytes(int64(len(content)))
	d := digest.FromString(content)
	dir := blob.NewDir(b.TempDir())
	for b.Loop() {
		if err := dir.Put(b.Context(), d, int64(len(content)), strings.NewReader(content)); err != nil {
			b.Fatal(err)
		}
		if err := dir.Delete(b.Context(), d); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkBare hashes 64 MiB, writes them to a file and fsyncs it.
func BenchmarkBare(b *testing.B) {
	content := benchContent()
	b.SetBytes(int64(len(content)))
	path := filepath.Join(b.TempDir(), "file")
	for b.Loop() {
		sha256.Sum256([]byte(content))
		f, err := os.Create(path)
		if err != nil {
			b.Fatal(err)
		}
		_, err = io.WriteString(f, content)
		if err := errors.Join(err, f.Sync(), f.Close(), os.Remove(path)); err != nil {
			b.Fatal(err)
		}
	}
}

func benchContent() string { return strings.Repeat("0123456789abcdef", 4<<20) }
