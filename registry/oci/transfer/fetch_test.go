package transfer_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/errdef"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/oci/transfer"
	"mlpromote.dev/mlpromote/registry/registrytest"
)

// stocked is a registry that has a blob.
func stocked(t *testing.T, n int, change func(http.Handler) http.Handler) (*far, content) {
	t.Helper()
	f := newFar(t, change)
	c := blob(n)
	if err := open(t, f.host(), transfer.Options{}).Send(t.Context(), c.Descriptor, c.open(nil)); err != nil {
		t.Fatal(err)
	}
	return f, c
}

// fetch reads a blob to its end.
func fetch(t *testing.T, r *transfer.Repository, desc ocispec.Descriptor) ([]byte, error) {
	t.Helper()
	rc, err := r.Fetch(t.Context(), desc)
	if err != nil {
		return nil, err
	}
	got, err := io.ReadAll(rc)
	return got, errors.Join(err, rc.Close())
}

// Where connections break, a pull goes on from the byte that came last.
func TestFetchResumes(t *testing.T) {
	t.Parallel()
	for seed := range uint64(8) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			const size, cuts = 1 << 20, 20
			f, c := stocked(t, size, nil)
			network := registrytest.NewNetwork(t, f.host(), seed, 100<<10, cuts)
			got, err := fetch(t, open(t, network.Host(), quick), c.Descriptor)
			if err != nil || !bytes.Equal(got, c.data) {
				t.Fatalf("%d bytes came, want %d: %v", len(got), size, err)
			}
			if network.Broken() < 5 || network.Down() > size+100<<10 {
				t.Errorf("%d connections were broken; %d bytes came for %d", network.Broken(), network.Down(), size)
			}
			for i, asked := range f.ranges {
				if (i == 0) != (asked == "") {
					t.Errorf("request %d asked for %q", i, asked)
				}
			}
		})
	}
}

// A registry without ranges sends what came once more. A manifest is fetched anew.
func TestFetchWithoutRanges(t *testing.T) {
	t.Parallel()
	f, c := stocked(t, 200_000, func(inner http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			r.Header.Del("Range")
			inner.ServeHTTP(w, r)
		})
	})
	raw := []byte(`{"schemaVersion":2,"mediaType":"` + ocispec.MediaTypeImageIndex + `","manifests":[],"annotations":{"x":"` + strings.Repeat("x", 200_000) + `"}}`)
	manifest := content{ocispec.Descriptor{MediaType: ocispec.MediaTypeImageIndex, Digest: digest.FromBytes(raw), Size: int64(len(raw))}, raw}
	if err := open(t, f.host(), quick).Push(t.Context(), manifest.Descriptor, bytes.NewReader(raw)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []content{c, manifest} {
		network := registrytest.NewNetwork(t, f.host(), 1, 150_000, 3)
		got, err := fetch(t, open(t, network.Host(), quick), c.Descriptor)
		if err != nil || !bytes.Equal(got, c.data) || network.Broken() != 3 {
			t.Errorf("%d bytes came after %d broken connections, want %d: %v", len(got), network.Broken(), c.Size, err)
		}
	}
}

// A network that never gives a byte is given up, and said to be what it is.
func TestFetchGivesUp(t *testing.T) {
	t.Parallel()
	f, c := stocked(t, 200_000, on(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodGet || !strings.Contains(r.URL.Path, "/blobs/sha") {
			return false
		}
		if r.Header.Get("Range") != "" {
			hangUp()
		}
		breakOff(w)
		return true
	}))
	o := quick
	o.Tries = 3
	_, err := fetch(t, open(t, f.host(), o), c.Descriptor)
	if registry.CodeOf(err) != registry.CodeUnavailable || !strings.Contains(err.Error(), f.host()) ||
		!strings.Contains(err.Error(), "1000 of 200000 bytes") {
		t.Errorf("error %v (%s), want CodeUnavailable that says how far it came", err, registry.CodeOf(err))
	}
}

// What goes wrong for good is not tried again.
func TestFetchFails(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		again func(w http.ResponseWriter) // answers the request for the rest
		text  string
	}{
		"deleted":   {func(w http.ResponseWriter) { w.WriteHeader(http.StatusNotFound) }, "404"},
		"forbidden": {func(w http.ResponseWriter) { w.WriteHeader(http.StatusForbidden) }, "403"},
		"other range": {func(w http.ResponseWriter) {
			w.Header().Set("Content-Range", "bytes 5-9/10")
			w.WriteHeader(http.StatusPartialContent)
		}, "bytes 5-9/10"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			asked := 0
			f, b := stocked(t, 200_000, on(func(w http.ResponseWriter, r *http.Request) bool {
				switch {
				case r.Method != http.MethodGet || !strings.Contains(r.URL.Path, "/blobs/sha"):
					return false
				case r.Header.Get("Range") != "":
					asked++
					c.again(w)
					return true
				}
				breakOff(w)
				return true
			}))
			_, err := fetch(t, open(t, f.host(), quick), b.Descriptor)
			if err == nil || !strings.Contains(err.Error(), c.text) || asked != 1 {
				t.Errorf("error %v after %d further requests, want one that says %s after one", err, asked, c.text)
			}
		})
	}
	f := newFar(t, nil)
	if _, err := fetch(t, open(t, f.host(), quick), blob(10).Descriptor); !errors.Is(err, errdef.ErrNotFound) {
		t.Errorf("error %v, want that it is not found", err)
	}
}

// Content that is shorter than it should be ends there: whoever hashes it is to say so.
func TestFetchOfTooLittle(t *testing.T) {
	t.Parallel()
	for _, ranges := range []bool{true, false} {
		f, c := stocked(t, 1000, func(inner http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if !ranges {
					r.Header.Del("Range")
				}
				if r.Method == http.MethodGet && r.Header.Get("Range") == "" {
					w = unsized{w}
				}
				inner.ServeHTTP(w, r)
			})
		})
		desc := c.Descriptor
		desc.Size = 2000
		if got, err := fetch(t, open(t, f.host(), quick), desc); err != nil || !bytes.Equal(got, c.data) {
			t.Errorf("ranges %t: %d bytes came, error %v, want the %d that are there", ranges, len(got), err, len(c.data))
		}
	}
}

// unsized does not say how long an answer is.
type unsized struct{ http.ResponseWriter }

func (u unsized) WriteHeader(status int) {
	u.Header().Del("Content-Length")
	u.ResponseWriter.WriteHeader(status)
	_ = http.NewResponseController(u.ResponseWriter).Flush() // or else it is counted
}

// Who no longer waits gets no more tries.
func TestFetchIsCancelled(t *testing.T) {
	t.Parallel()
	f, c := stocked(t, 200_000, nil)
	network := registrytest.NewNetwork(t, f.host(), 1, 1000, 1000)
	ctx, cancel := context.WithCancel(t.Context())
	rc, err := open(t, network.Host(), transfer.Options{Tries: 1000}).Fetch(ctx, c.Descriptor)
	if err != nil {
		t.Fatal(err)
	}
	defer rc.Close()
	cancel()
	if _, err := io.ReadAll(rc); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want that it was cancelled", err)
	}
}

// breakOff sends 1000 bytes of 200000.
func breakOff(w http.ResponseWriter) {
	w.Header().Set("Content-Length", "200000")
	_, _ = w.Write(make([]byte, 1000))
	_ = http.NewResponseController(w).Flush()
	hangUp()
}
