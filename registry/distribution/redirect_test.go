package distribution_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/distribution"
	"mlpromote.dev/mlpromote/registry/registrytest"
	"mlpromote.dev/mlpromote/registry/s3"
	"mlpromote.dev/mlpromote/registry/sqlite"
)

// store is an object store that the tests here share; nil if there is none.
var store *registrytest.S3Server

func TestMain(m *testing.M) {
	code, err := registrytest.WithS3Server(func(s *registrytest.S3Server) int {
		store = s
		return m.Run()
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// bucket is a registry in an object store.
func bucket(t testing.TB) distribution.Config {
	if store == nil {
		t.Skip("MLPROMOTE_S3SERVER names no program: make test builds one")
	}
	config, err := s3.ParseURL(store.URL(strings.ToLower(rand.Text())))
	if err != nil {
		t.Fatal(err)
	}
	blobs, err := s3.Open(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	db, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "registry.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return distribution.Config{Blobs: blobs, Refs: db, Deleter: db, Uploads: s3.NewUploads(blobs, db), Authorize: allow}
}

// direct asks without going where the answer points to.
func (w *world) direct(t *testing.T, method, path string, header ...string) answer {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, w.url+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	response, err := w.client.Transport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{status: response.StatusCode, header: response.Header, body: content}
}

func TestPullRedirected(t *testing.T) {
	t.Parallel()
	c := bucket(t)
	c.Redirect = time.Minute
	w := listen(t, c)
	d := w.pushBlob(t, repo, "0123456789")
	path := at(repo, "blobs", d)

	a := w.direct(t, "GET", path)
	to := a.header.Get("Location")
	if a.status != http.StatusTemporaryRedirect || !strings.HasPrefix(to, store.Endpoint+"/") || a.header.Get("Docker-Content-Digest") != d.String() {
		t.Fatalf("got %d to %q, want a redirect to the object store", a.status, to)
	}
	// Whoever follows gets the bytes, without credentials of his own.
	response, err := http.Get(to)
	if err != nil {
		t.Fatal(err)
	}
	content, err := io.ReadAll(response.Body)
	response.Body.Close()
	if err != nil || string(content) != "0123456789" || response.Header.Get("Content-Type") != typeBytes {
		t.Errorf("the object store sends %q of type %q (%v)", content, response.Header.Get("Content-Type"), err)
	}
	w.do(t, "GET", path, nil).want(t, 200, "")
	if got := w.do(t, "GET", path, nil, "Range", "bytes=2-4").want(t, 206, ""); string(got.body) != "234" {
		t.Errorf("a range is %q, want 234", got.body)
	}

	// What needs no bytes is answered here.
	if a := w.direct(t, "HEAD", path); a.status != 200 || a.header.Get("Content-Length") != "10" {
		t.Errorf("HEAD: got %d with length %s", a.status, a.header.Get("Content-Length"))
	}
	if a := w.direct(t, "GET", path, "If-None-Match", `"`+d.String()+`"`); a.status != 304 {
		t.Errorf("If-None-Match: got %d, want 304", a.status)
	}
	if a := w.direct(t, "GET", path, "If-Range", `"`+d.String()+`"`, "Range", "bytes=2-4"); a.status != 206 {
		t.Errorf("If-Range: got %d, want 206", a.status)
	}
	w.pushImage(t, repo, "v1", nil)
	if a := w.direct(t, "GET", at(repo, "manifests/v1")); a.status != 200 {
		t.Errorf("a manifest: got %d, want 200", a.status)
	}
}

// Nobody is sent to the bytes of a blob that is not in his repository, or not there.
func TestRedirectAsksForMembership(t *testing.T) {
	t.Parallel()
	c := bucket(t)
	c.Redirect = time.Minute
	denied := false
	c.Authorize = func(_ context.Context, a distribution.Access) error {
		if denied && a.Repository == repo {
			return registry.Errorf(registry.CodeForbidden, "not you")
		}
		return nil
	}
	w := listen(t, c)
	d := w.pushBlob(t, repo, "secret")
	for _, path := range []string{at(other, "blobs", d), at(repo, "blobs", digest.FromString("no"))} {
		w.do(t, "GET", path, nil).want(t, 404, "BLOB_UNKNOWN").wantHeader(t, "Location", "")
	}
	denied = true
	w.do(t, "GET", at(repo, "blobs", d), nil).want(t, 403, "DENIED").wantHeader(t, "Location", "")
	denied = false
	if err := c.Blobs.Delete(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	w.do(t, "GET", at(repo, "blobs", d), nil).want(t, 404, "BLOB_UNKNOWN").wantHeader(t, "Location", "")
}

// Nobody is redirected where that was not asked for, or where there is nowhere to go.
func TestNotRedirected(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(testing.TB) distribution.Config{
		"not asked for": bucket,
		"not possible": func(t testing.TB) distribution.Config {
			c := memory(t)
			c.Redirect = time.Minute
			return c
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := listen(t, open(t))
			d := w.pushBlob(t, repo, "content")
			if a := w.direct(t, "GET", at(repo, "blobs", d)); a.status != 200 {
				t.Errorf("got %d, want 200", a.status)
			}
		})
	}
}
