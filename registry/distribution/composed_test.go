package distribution_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/composed"
	"mlpromote.dev/mlpromote/registry/distribution"
	"mlpromote.dev/mlpromote/registry/storage"
)

// parted is a registry with a blob that is composed of two others and of literal bytes.
type parted struct {
	distribution.Config
	content string
	digest  registry.Digest
	parts   []registry.Digest
}

func compose(t testing.TB, c distribution.Config) parted {
	t.Helper()
	db := c.Refs.(storage.Recipes)
	p := parted{Config: c}
	recipe := storage.Recipe{}
	for i, piece := range []string{"header", strings.Repeat("first part ", 20_000), "between", strings.Repeat("second part ", 10_000), "end"} {
		p.content += piece
		if i%2 == 0 {
			recipe.Pieces = append(recipe.Pieces, storage.Piece{Literal: []byte(piece)})
			continue
		}
		d := digest.FromString(piece)
		if err := c.Blobs.Put(t.Context(), d, int64(len(piece)), strings.NewReader(piece)); err != nil {
			t.Fatal(err)
		}
		recipe.Pieces = append(recipe.Pieces, storage.Piece{Digest: d, Size: int64(len(piece))})
		p.parts = append(p.parts, d)
	}
	p.digest = digest.FromString(p.content)
	recipe.Digest, recipe.Size = p.digest, int64(len(p.content))
	if added, err := db.AddRecipe(t.Context(), recipe); err != nil || !added {
		t.Fatal(added, err)
	}
	if err := c.Refs.AddBlob(t.Context(), repo, p.digest, recipe.Size); err != nil {
		t.Fatal(err)
	}
	p.Blobs = composed.Blobs(c.Blobs, db, 0)
	return p
}

// A composed blob is pulled as any other, from every storage: the service sends it, and never a redirect.
func TestPullComposed(t *testing.T) {
	t.Parallel()
	for name, store := range map[string]func(testing.TB) distribution.Config{"memory": memory, "disk": disk, "object store": bucket} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := compose(t, store(t))
			p.Redirect = time.Minute
			w := listen(t, p.Config)
			path := at(repo, "blobs", p.digest)
			for range 2 { // the second time, it is not hashed again
				if a := w.direct(t, "GET", path); a.status != 200 || string(a.body) != p.content {
					t.Fatalf("GET: %d with %d bytes, want 200 with %d", a.status, len(a.body), len(p.content))
				}
			}
			if a := w.direct(t, "HEAD", path); a.status != 200 || a.header.Get("Docker-Content-Digest") != p.digest.String() {
				t.Errorf("HEAD: %d", a.status)
			}
			for _, c := range []struct{ from, to int }{{0, 0}, {3, 10}, {5, 220_010}, {220_000, len(p.content) - 1}, {len(p.content) - 1, len(p.content) - 1}} {
				a := w.do(t, "GET", path, nil, "Range", fmt.Sprintf("bytes=%d-%d", c.from, c.to)).want(t, 206, "")
				if string(a.body) != p.content[c.from:c.to+1] {
					t.Errorf("bytes %d to %d are wrong", c.from, c.to)
				}
			}
			if a := w.direct(t, "GET", at(other, "blobs", p.digest)); a.status != 404 {
				t.Errorf("from another repository: %d, want 404", a.status)
			}
			// A client that lacks it mounts or pushes it, which stores nothing.
			w.do(t, "POST", "/v2/"+other+"/blobs/uploads/?mount="+p.digest.String()+"&from="+repo, nil).want(t, 201, "")
			if a := w.direct(t, "GET", at(other, "blobs", p.digest)); a.status != 200 || string(a.body) != p.content {
				t.Errorf("after a mount: %d with %d bytes", a.status, len(a.body))
			}
			if err := p.Config.Blobs.Put(t.Context(), p.digest, int64(len(p.content)), strings.NewReader("")); err != nil {
				t.Error(err)
			}
		})
	}
}

// A missing part is a missing blob, so that clients push the blob again.
func TestPullComposedWithoutPart(t *testing.T) {
	t.Parallel()
	c := disk(t)
	p := compose(t, c)
	w := listen(t, p.Config)
	if err := c.Blobs.Delete(t.Context(), p.parts[1]); err != nil {
		t.Fatal(err)
	}
	path := at(repo, "blobs", p.digest)
	w.do(t, "HEAD", path, nil).want(t, 404, "")
	w.pushBlob(t, repo, p.content)
	if a := w.do(t, "GET", path, nil).want(t, 200, ""); string(a.body) != p.content {
		t.Error("the blob has other bytes than were pushed")
	}
}

// A damaged part is not sent to its end, and the damage is told.
func TestPullComposedDamaged(t *testing.T) {
	t.Parallel()
	w := newDamageable(t, false)
	p := compose(t, w.Config)
	h, err := distribution.New(p.Config)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	w.url, w.client = server.URL, server.Client()
	w.change(t, p.parts[0], 100_000, 'X')
	if status, content, err := w.pull(t, p.digest); status != 200 || err == nil || len(content) >= len(p.content) {
		t.Errorf("got %d with %d bytes, error %v, want a response that breaks off", status, len(content), err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if !slices.Equal(w.damaged, []registry.Digest{p.digest}) {
		t.Errorf("told of the damage of %v, want %s", w.damaged, p.digest)
	}
}

// socket notes what the kernel can copy.
type socket struct {
	http.ResponseWriter
	mu    *sync.Mutex
	files *int64 // bytes
}

func (s socket) ReadFrom(r io.Reader) (int64, error) {
	n, err := io.Copy(s.ResponseWriter, r)
	if limited, ok := r.(*io.LimitedReader); ok {
		if _, ok := limited.R.(*os.File); ok {
			s.mu.Lock()
			defer s.mu.Unlock()
			*s.files += n
		}
	}
	return n, err
}

// The parts of a blob that was hashed before go from their files to the socket, also in a range.
func TestSendComposedFiles(t *testing.T) {
	t.Parallel()
	p := compose(t, disk(t))
	h, err := distribution.New(p.Config)
	if err != nil {
		t.Fatal(err)
	}
	var files int64
	var mu sync.Mutex
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { h.ServeHTTP(socket{w, &mu, &files}, r) }))
	t.Cleanup(server.Close)
	w := &world{Config: p.Config, url: server.URL, client: server.Client()}
	path := at(repo, "blobs", p.digest)
	for i, c := range []struct {
		asks string
		want int64
	}{{"", 0}, {"", 340_000}, {"bytes=10-", 340_000 - 4}, {"bytes=6-", 340_000}, {"bytes=0-9", 4}} {
		files = 0
		var header []string
		if c.asks != "" {
			header = []string{"Range", c.asks}
		}
		w.do(t, "GET", path, nil, header...)
		mu.Lock()
		if files != c.want {
			t.Errorf("request %d for %q: %d bytes came from files, want %d", i, c.asks, files, c.want)
		}
		mu.Unlock()
	}
}
