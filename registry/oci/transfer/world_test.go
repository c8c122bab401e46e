package transfer_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"

	"mlpromote.dev/mlpromote/registry/distribution"
	"mlpromote.dev/mlpromote/registry/mem"
	"mlpromote.dev/mlpromote/registry/oci/transfer"
)

const repo = "staging/vision/digits"

// far is a registry on the other side of a network. What it was asked is counted.
type far struct {
	*httptest.Server
	taken  atomic.Int64 // bytes of uploads that it read
	opened atomic.Int64 // uploads that were begun

	mu     sync.Mutex
	ranges []string // of pulls
	chunks []int64  // that were announced by PATCH
}

// newFar starts a registry in memory behind a handler that may change how it behaves.
func newFar(t *testing.T, change func(inner http.Handler) http.Handler) *far {
	t.Helper()
	blobs, db := mem.NewBlobs(), mem.New()
	inner, err := distribution.New(distribution.Config{
		Blobs: blobs, Refs: db, Deleter: db, Uploads: mem.NewUploads(blobs),
		Authorize: func(context.Context, distribution.Access) error { return nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		inner = change(inner)
	}
	f := &far{}
	f.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.note(r)
		inner.ServeHTTP(w, r)
	}))
	t.Cleanup(f.Close)
	return f
}

// note counts what a request is about.
func (f *far) note(r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case r.Method == http.MethodPost:
		f.opened.Add(1)
	case r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/blobs/sha"):
		f.ranges = append(f.ranges, r.Header.Get("Range"))
	case r.Method == http.MethodPatch:
		f.chunks = append(f.chunks, r.ContentLength)
		fallthrough
	case r.Method == http.MethodPut:
		r.Body = counted{r.Body, &f.taken}
	}
}

// counted counts what is read of a body.
type counted struct {
	io.ReadCloser
	n *atomic.Int64
}

func (c counted) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	c.n.Add(int64(n))
	return n, err
}

func (f *far) host() string { return strings.TrimPrefix(f.URL, "http://") }

// quick is as patient as the default, in less time.
var quick = transfer.Options{Chunk: 64 << 10, Pause: time.Millisecond}

// open gives the repository at a host, whose connections are its own.
func open(t *testing.T, host string, o transfer.Options) *transfer.Repository {
	t.Helper()
	r, err := remote.NewRepository(host + "/" + repo)
	if err != nil {
		t.Fatal(err)
	}
	base := &http.Transport{}
	t.Cleanup(base.CloseIdleConnections)
	r.PlainHTTP = true
	r.Client = &auth.Client{Client: &http.Client{Transport: transfer.Transport(base)}, Cache: auth.NewCache()}
	return transfer.New(r, o)
}

// content is bytes with their descriptor.
type content struct {
	ocispec.Descriptor
	data []byte
}

func blob(n int) content {
	data := make([]byte, n)
	_, _ = rand.Read(data) // never fails
	return content{ocispec.Descriptor{MediaType: "application/octet-stream", Digest: digest.FromBytes(data), Size: int64(n)}, data}
}

// open opens the bytes, and counts how often.
func (c content) open(times *atomic.Int64) func() (io.ReadCloser, error) {
	return func() (io.ReadCloser, error) {
		if times != nil {
			times.Add(1)
		}
		return io.NopCloser(onlyReader{bytes.NewReader(c.data)}), nil
	}
}

type onlyReader struct{ io.Reader }

// wantThere reads content over a good network.
func (f *far) wantThere(t *testing.T, c content) {
	t.Helper()
	rc, err := open(t, f.host(), quick).Fetch(t.Context(), c.Descriptor)
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(rc)
	if err := errors.Join(err, rc.Close()); err != nil || !bytes.Equal(got, c.data) {
		t.Errorf("the registry has %d bytes, want the %d sent: %v", len(got), len(c.data), err)
	}
}

// on gives a handler that answers some requests itself: those for which f says that it did.
func on(f func(w http.ResponseWriter, r *http.Request) bool) func(http.Handler) http.Handler {
	return func(inner http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !f(w, r) {
				inner.ServeHTTP(w, r)
			}
		})
	}
}

// hangUp breaks the connection of a request without an answer.
func hangUp() { panic(http.ErrAbortHandler) }
