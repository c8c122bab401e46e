package distribution_test

import (
	"context"
	"crypto/rand"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/blob"
	"mlpromote.dev/mlpromote/registry/distribution"
	"mlpromote.dev/mlpromote/registry/mem"
)

// damageable is a registry over files whose bytes a test can change.
type damageable struct {
	*world
	dir string

	mu      sync.Mutex
	damaged []registry.Digest
}

func newDamageable(t *testing.T, protocol2 bool) *damageable {
	t.Helper()
	w := &damageable{dir: t.TempDir()}
	db, dir := mem.New(), blob.NewDir(w.dir)
	c := distribution.Config{Blobs: dir, Refs: db, Deleter: db, Uploads: blob.NewUploads(dir, db), Authorize: allow}
	c.Damaged = func(_ context.Context, d registry.Digest, _ error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.damaged = append(w.damaged, d)
	}
	h, err := distribution.New(c)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(h)
	server.EnableHTTP2 = protocol2
	if protocol2 {
		server.StartTLS()
	} else {
		server.Start()
	}
	t.Cleanup(server.Close)
	w.world = &world{Config: c, url: server.URL, client: server.Client()}
	return w
}

func (w *damageable) path(d digest.Digest) string {
	return filepath.Join(w.dir, "blobs", "sha256", d.Encoded()[:2], d.Encoded())
}

// change overwrites a byte of a stored blob.
func (w *damageable) change(t *testing.T, d digest.Digest, at int, to byte) {
	t.Helper()
	if err := os.Chmod(w.path(d), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(w.path(d), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt([]byte{to}, int64(at)); err != nil {
		t.Fatal(err)
	}
}

// pull gets a blob as clients do, and returns the response.
func (w *damageable) pull(t *testing.T, d digest.Digest, header ...string) (status int, content []byte, err error) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, w.url+at(repo, "blobs", d), http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	response, err := w.client.Do(r)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	content, err = io.ReadAll(response.Body)
	return response.StatusCode, content, err
}

// told is how often damage was reported since the last call.
func (w *damageable) told() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := len(w.damaged)
	w.damaged = nil
	return n
}

// A client never gets a complete blob whose bytes do not match its digest, wherever they were
// changed and however often the blob was pulled before.
func TestPullChangedBlob(t *testing.T) {
	t.Parallel()
	for name, protocol2 := range map[string]bool{"HTTP/1.1": false, "HTTP/2": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newDamageable(t, protocol2)
			for _, size := range []int{1, 4 << 10, 64 << 10, 64<<10 + 1, 69 << 10, 1 << 20} {
				for _, place := range []int{0, size / 2, size - 1} {
					content := make([]byte, size)
					_, _ = rand.Read(content)
					d := w.pushBlob(t, repo, string(content))
					for range 2 {
						if status, got, err := w.pull(t, d); status != http.StatusOK || err != nil || string(got) != string(content) {
							t.Fatalf("%d bytes: got %d, %d bytes, error %v", size, status, len(got), err)
						}
					}
					w.change(t, d, place, content[place]^1)
					status, got, err := w.pull(t, d)
					if whole := len(got) == size && err == nil && status == http.StatusOK; whole || size <= 64<<10 && status != http.StatusBadRequest {
						t.Errorf("%d bytes, changed at %d: got %d, %d bytes, error %v", size, place, status, len(got), err)
					}
					if n := w.told(); n != 1 {
						t.Errorf("%d bytes, changed at %d: %d reports of damage, want 1", size, place, n)
					}
					w.change(t, d, place, content[place])
					if status, got, err := w.pull(t, d); status != http.StatusOK || err != nil || len(got) != size {
						t.Errorf("%d bytes, repaired: got %d, %d bytes, error %v", size, status, len(got), err)
					}
				}
			}
		})
	}
}

// A blob whose file was truncated is not found.
func TestPullTruncatedBlob(t *testing.T) {
	t.Parallel()
	w := newDamageable(t, false)
	content := make([]byte, 1<<20)
	d := w.pushBlob(t, repo, string(content))
	if err := os.Chmod(w.path(d), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(w.path(d), 1<<19); err != nil {
		t.Fatal(err)
	}
	if status, _, err := w.pull(t, d); status != http.StatusNotFound || err != nil {
		t.Errorf("got %d, error %v, want 404", status, err)
	}
}

// A range of a blob is sent as it is stored, since it has no digest. Clients check the whole
// blob.
func TestPullRangeOfDamagedBlob(t *testing.T) {
	t.Parallel()
	w := newDamageable(t, false)
	d := w.pushBlob(t, repo, string(make([]byte, 1<<20)))
	w.change(t, d, 500_000, 1)
	for _, r := range []string{"bytes=400000-599999", "bytes=0-9", "bytes=-9"} {
		if status, _, err := w.pull(t, d, "Range", r); status != http.StatusPartialContent || err != nil {
			t.Errorf("%s: got %d, error %v, want 206", r, status, err)
		}
	}
	if status, got, err := w.pull(t, d, "Range", "bytes=0-"); err == nil && len(got) == 1<<20 {
		t.Errorf("the whole as a range: got %d and all bytes", status)
	}
}

// A changed object in a bucket is noticed while it is sent, too.
func TestPullDamagedObject(t *testing.T) {
	t.Parallel()
	w := listen(t, bucket(t))
	for _, size := range []int{1000, 1 << 20} {
		content := make([]byte, size)
		_, _ = rand.Read(content)
		d := w.pushBlob(t, repo, string(content))
		found := ""
		err := filepath.WalkDir(store.Folder(""), func(path string, entry fs.DirEntry, err error) error {
			if err == nil && !entry.IsDir() && entry.Name() == d.Encoded() {
				found = path
			}
			return err
		})
		if err != nil || found == "" {
			t.Fatalf("the object of %s: %q, error %v", d, found, err)
		}
		content[size/2] ^= 1
		if err := os.WriteFile(found, content, 0o600); err != nil {
			t.Fatal(err)
		}
		response, err := w.client.Get(w.url + at(repo, "blobs", d))
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if len(got) == size && err == nil {
			t.Errorf("a changed object of %d bytes: got %s and all bytes, want fewer", size, response.Status)
		}
	}
}
