package transfer_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"oras.land/oras-go/v2/registry/remote/errcode"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/oci"
	"mlpromote.dev/mlpromote/registry/oci/transfer"
	"mlpromote.dev/mlpromote/registry/registrytest"
)

var (
	_ oci.Repository = (*transfer.Repository)(nil)
	_ oci.Mounter    = (*transfer.Repository)(nil)
	_ oci.Sender     = (*transfer.Repository)(nil)
)

// Blobs of all sizes around that of a chunk are stored, without a byte too many.
func TestSend(t *testing.T) {
	t.Parallel()
	f := newFar(t, nil)
	r := open(t, f.host(), transfer.Options{Chunk: 1000})
	total := int64(0)
	for _, n := range []int{0, 1, 999, 1000, 1001, 1999, 2000, 2001, 12345} {
		c := blob(n)
		var opened atomic.Int64
		if err := r.Send(t.Context(), c.Descriptor, c.open(&opened)); err != nil || opened.Load() != 1 {
			t.Fatalf("%d bytes: %v, opened %d times", n, err, opened.Load())
		}
		f.wantThere(t, c)
		if total += c.Size; f.taken.Load() != total {
			t.Errorf("%d bytes: the registry has read %d bytes, want %d", n, f.taken.Load(), total)
		}
	}
	for i, n := range f.chunks {
		if n > 1000 {
			t.Errorf("chunk %d has %d bytes", i, n)
		}
	}
}

// Where connections break, an upload goes on from the byte that the registry has.
func TestSendOverBrokenConnections(t *testing.T) {
	t.Parallel()
	for seed := range uint64(8) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			const size, cuts = 1 << 20, 20
			f := newFar(t, nil)
			network := registrytest.NewNetwork(t, f.host(), seed, 100<<10, cuts)
			c := blob(size)
			var opened atomic.Int64
			if err := open(t, network.Host(), quick).Send(t.Context(), c.Descriptor, c.open(&opened)); err != nil {
				t.Fatalf("after %d broken connections: %v", network.Broken(), err)
			}
			f.wantThere(t, c)
			if n := f.taken.Load(); n != size || opened.Load() != 1 || f.opened.Load() != 1 {
				t.Errorf("the registry has read %d bytes for %d, in %d uploads; the content was opened %d times", n, size, f.opened.Load(), opened.Load())
			}
			if network.Broken() < 5 {
				t.Errorf("%d connections were broken: the test shows nothing", network.Broken())
			}
		})
	}
}

// A registry that wants large chunks gets them.
func TestSmallestChunk(t *testing.T) {
	t.Parallel()
	const least = 5000
	f := newFar(t, func(inner http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPost {
				w.Header().Set("OCI-Chunk-Min-Length", fmt.Sprint(least))
			}
			inner.ServeHTTP(w, r)
		})
	})
	c := blob(12_345)
	if err := open(t, f.host(), transfer.Options{Chunk: 1000}).Send(t.Context(), c.Descriptor, c.open(nil)); err != nil {
		t.Fatal(err)
	}
	f.wantThere(t, c)
	if want := []int64{least, least, 2345}; fmt.Sprint(f.chunks) != fmt.Sprint(want) {
		t.Errorf("chunks of %v bytes came, want %v", f.chunks, want)
	}
}

// odd is a registry with a habit of its own, and what may come of it.
type odd struct {
	change func(inner http.Handler) http.Handler
	opened int64 // how often the content is opened
}

// refusing answers the chunks that when chooses with a status.
func refusing(status int, when func(n int64) bool) func(http.Handler) http.Handler {
	var n atomic.Int64
	return on(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodPatch || !when(n.Add(1)) {
			return false
		}
		http.Error(w, `{"errors":[{"code":"UNSUPPORTED","message":"no"}]}`, status)
		return true
	})
}

// forgetting hangs up in the middle of the first chunks, and knows nothing of their uploads then.
func forgetting(times int64) func(http.Handler) http.Handler {
	var n atomic.Int64
	forgotten := make(chan string, 1)
	forgotten <- ""
	return on(func(w http.ResponseWriter, r *http.Request) bool {
		last := <-forgotten
		defer func() { forgotten <- last }()
		switch {
		case r.Method == http.MethodPatch && n.Add(1) <= times:
			last = r.URL.Path
			hangUp()
		case r.URL.Path == last:
			http.Error(w, `{"errors":[{"code":"BLOB_UPLOAD_UNKNOWN"}]}`, http.StatusNotFound)
			return true
		}
		return false
	})
}

// Registries differ in what they do beside the least. The blob arrives all the same.
func TestSendToOddRegistries(t *testing.T) {
	t.Parallel()
	always := func(int64) bool { return true }
	for name, c := range map[string]odd{
		"no chunks, 405":  {refusing(405, always), 2},
		"no chunks, 400":  {refusing(400, always), 2},
		"no chunks, 413":  {refusing(413, always), 2},
		"no chunks, 501":  {refusing(501, always), 2},
		"busy":            {refusing(503, func(n int64) bool { return n%2 == 0 }), 1},
		"too many":        {refusing(429, func(n int64) bool { return n < 4 }), 1},
		"one is garbled":  {refusing(400, func(n int64) bool { return n == 3 }), 2},
		"forgets uploads": {forgetting(3), 4},
		"takes chunks wherever they begin": {func(inner http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				r.Header.Del("Content-Range")
				inner.ServeHTTP(w, r)
			})
		}, 1},
		"says nothing of ranges": {func(inner http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				rec := httptest.NewRecorder()
				inner.ServeHTTP(rec, r)
				for key, values := range rec.Header() {
					if key != "Range" && (key != "Location" || r.Method == http.MethodPost) {
						w.Header()[key] = values
					}
				}
				w.WriteHeader(rec.Code)
				_, _ = rec.Body.WriteTo(w)
			})
		}, 1},
		"absolute locations": {func(inner http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				rec := httptest.NewRecorder()
				inner.ServeHTTP(rec, r)
				for key, values := range rec.Header() {
					w.Header()[key] = values
				}
				if to := rec.Header().Get("Location"); to != "" {
					w.Header().Set("Location", "http://"+r.Host+to+"?state=a%20b")
				}
				w.WriteHeader(rec.Code)
				_, _ = rec.Body.WriteTo(w)
			})
		}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFar(t, c.change)
			r := open(t, f.host(), quick)
			b := blob(300_000)
			var opened atomic.Int64
			if err := r.Send(t.Context(), b.Descriptor, b.open(&opened)); err != nil || opened.Load() != c.opened {
				t.Fatalf("%v; the content was opened %d times, want %d", err, opened.Load(), c.opened)
			}
			f.wantThere(t, b)
		})
	}
}

// What takes no chunks is asked once: the next blob comes in one request at once.
func TestNoChunksIsRemembered(t *testing.T) {
	t.Parallel()
	f := newFar(t, refusing(405, func(int64) bool { return true }))
	r := open(t, f.host(), quick)
	for range 3 {
		c := blob(200_000)
		if err := r.Send(t.Context(), c.Descriptor, c.open(nil)); err != nil {
			t.Fatal(err)
		}
		f.wantThere(t, c)
	}
	if len(f.chunks) != 1 {
		t.Errorf("%d chunks were tried, want 1", len(f.chunks))
	}
}

// An upload may have ended well although nobody heard of it.
func TestLostAnswer(t *testing.T) {
	t.Parallel()
	for _, n := range []int{100, 200_000} {
		f := newFar(t, func(inner http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodPut {
					inner.ServeHTTP(httptest.NewRecorder(), r)
					hangUp()
				}
				inner.ServeHTTP(w, r)
			})
		})
		c := blob(n)
		var opened atomic.Int64
		if err := open(t, f.host(), quick).Send(t.Context(), c.Descriptor, c.open(&opened)); err != nil || opened.Load() != 1 {
			t.Fatalf("%d bytes: %v, opened %d times", n, err, opened.Load())
		}
		f.wantThere(t, c)
	}
}

// Push has its content once. What can be rewound is read again, and all else is lost with
// the upload.
func TestPushReadsAgain(t *testing.T) {
	t.Parallel()
	c := blob(200_000)
	f := newFar(t, forgetting(1))
	if err := open(t, f.host(), quick).Push(t.Context(), c.Descriptor, bytes.NewReader(c.data)); err != nil {
		t.Fatal(err)
	}
	f.wantThere(t, c)
	f = newFar(t, forgetting(1))
	err := open(t, f.host(), quick).Push(t.Context(), c.Descriptor, onlyReader{bytes.NewReader(c.data)})
	if registry.CodeOf(err) != registry.CodeUnavailable || !strings.Contains(err.Error(), "cannot be read again") {
		t.Errorf("error %v, want one that says that the content cannot be read again", err)
	}
}

// A mount sends nothing where the registry can, and the blob where it cannot.
func TestMount(t *testing.T) {
	t.Parallel()
	f := newFar(t, nil)
	c := blob(200_000)
	if err := open(t, f.host(), quick).Send(t.Context(), c.Descriptor, c.open(nil)); err != nil {
		t.Fatal(err)
	}
	sent := f.taken.Load()
	for _, from := range []string{repo, "no/where"} {
		r := open(t, f.host(), quick)
		r.Reference.Repository = "prod/vision/digits"
		var opened atomic.Int64
		if err := r.Mount(t.Context(), c.Descriptor, from, c.open(&opened)); err != nil {
			t.Fatal(err)
		}
		if there, err := r.Exists(t.Context(), c.Descriptor); err != nil || !there {
			t.Errorf("from %s: there %v, error %v", from, there, err)
		}
		want := int64(0)
		if from != repo {
			want = c.Size
		}
		if n := f.taken.Load() - sent; n != want || opened.Load() != min(want, 1) {
			t.Errorf("from %s: %d bytes were sent, want %d; the content was opened %d times", from, n, want, opened.Load())
		}
	}
}

// A registry that refuses to mount, where it should begin an upload, gets one all the same;
// one that refuses the caller does not.
func TestMountRefused(t *testing.T) {
	t.Parallel()
	for status, sent := range map[int]bool{http.StatusNotFound: true,
		http.StatusMethodNotAllowed: true, http.StatusNotImplemented: true, http.StatusForbidden: false} {
		f := newFar(t, on(func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Query().Has("mount") {
				w.WriteHeader(status)
				return true
			}
			return false
		}))
		c := blob(200_000)
		r := open(t, f.host(), quick)
		if err := r.Mount(t.Context(), c.Descriptor, "staging/other", c.open(nil)); (err == nil) != sent {
			t.Errorf("%d: error %v, want sent %t", status, err, sent)
		}
		if there, err := r.Exists(t.Context(), c.Descriptor); err != nil || there != sent {
			t.Errorf("%d: there %t, error %v, want %t", status, there, err, sent)
		}
	}
}

// What cannot be sent says why, and how far it came.
func TestSendFails(t *testing.T) {
	t.Parallel()
	whole, garbled := blob(200_000), errors.New("the disk is on fire")
	short, long := whole, whole
	short.data, long.data = whole.data[:150_000], append(bytes.Clone(whole.data), 'x')
	for name, c := range map[string]struct {
		change func(http.Handler) http.Handler
		open   func() (io.ReadCloser, error)
		code   registry.Code
		text   string
	}{
		"forbidden":      {refusing(403, func(n int64) bool { return n == 2 }), whole.open(nil), registry.CodeInternal, "403"},
		"always busy":    {refusing(503, func(n int64) bool { return n > 2 }), whole.open(nil), registry.CodeUnavailable, "131072 of 200000 bytes"},
		"always forgets": {forgetting(1000), whole.open(nil), registry.CodeUnavailable, "begun 4 times"},
		"too short":      {nil, short.open(nil), registry.CodeDigest, "bytes too early"},
		"too long":       {nil, long.open(nil), registry.CodeDigest, "continues after its end"},
		"does not open":  {nil, func() (io.ReadCloser, error) { return nil, garbled }, registry.CodeInternal, "on fire"},
		"cannot be read": {nil, func() (io.ReadCloser, error) {
			return io.NopCloser(io.MultiReader(bytes.NewReader(whole.data[:100_000]), failing{garbled})), nil
		}, registry.CodeInternal, "on fire"},
		"another's place": {elsewhere, whole.open(nil), registry.CodeUnavailable, "credentials do not go there"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFar(t, c.change)
			o := quick
			o.Tries = 4
			err := open(t, f.host(), o).Send(t.Context(), whole.Descriptor, c.open)
			if registry.CodeOf(err) != c.code || !strings.Contains(fmt.Sprint(err), c.text) {
				t.Errorf("error %v (%s), want %s that says %q", err, registry.CodeOf(err), c.code, c.text)
			}
			var refused *errcode.ErrorResponse
			if name == "forbidden" && (!errors.As(err, &refused) || refused.StatusCode != http.StatusForbidden || len(refused.Errors) != 1) {
				t.Errorf("error %v, want what the registry said", err)
			}
			if there, err := open(t, f.host(), quick).Exists(t.Context(), whole.Descriptor); err != nil || there {
				t.Errorf("the blob is there: %v, error %v", there, err)
			}
		})
	}
}

// elsewhere says that uploads go on at another host.
func elsewhere(inner http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			w.Header().Set("Location", "http://registry.example.com/v2/x/blobs/uploads/1")
			w.WriteHeader(http.StatusAccepted)
			return
		}
		inner.ServeHTTP(w, r)
	})
}

type failing struct{ error }

func (f failing) Read([]byte) (int, error) { return 0, f.error }

// Who no longer waits gets no more tries.
func TestSendIsCancelled(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	f := newFar(t, on(func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPatch {
			cancel()
			hangUp()
		}
		return false
	}))
	c := blob(200_000)
	if err := open(t, f.host(), transfer.Options{Chunk: 1000}).Send(ctx, c.Descriptor, c.open(nil)); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want that it was cancelled", err)
	}
	if len(f.chunks) != 1 {
		t.Errorf("%d chunks were sent", len(f.chunks))
	}
}
