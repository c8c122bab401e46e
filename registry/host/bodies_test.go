package host

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// Large bodies take turns; small ones and blobs do not wait for them.
func TestHeld(t *testing.T) {
	t.Parallel()
	const senders = 3 * heldAtOnce
	begun := make(chan struct{}, senders)
	server := httptest.NewServer(LimitBodies(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		buffer := make([]byte, heldFree+1)
		if _, err := io.ReadFull(r.Body, buffer); err == nil {
			begun <- struct{}{}
		}
		_, _ = io.Copy(io.Discard, r.Body) // it ends, or its client does
	}), time.Minute))
	t.Cleanup(server.Close)
	post := func(path string, body io.Reader) {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+path, body)
		if err != nil {
			t.Error(err)
			return
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Error(err)
			return
		}
		_ = response.Body.Close()
	}
	var open []*io.PipeWriter
	var sending, written sync.WaitGroup
	for range senders {
		r, w := io.Pipe()
		open = append(open, w)
		sending.Go(func() { post("/v2/staging/a/manifests/1", r) })
		written.Go(func() { _, _ = io.WriteString(w, strings.Repeat("x", heldFree+1)) })
	}
	for range heldAtOnce {
		<-begun
	}
	post("/v2/staging/a/manifests/2", strings.NewReader("small"))
	post("/v2/staging/a/blobs/uploads/x", strings.NewReader(strings.Repeat("x", 2*heldFree)))
	<-begun // of the blob
	if n := len(begun); n > 0 {
		t.Errorf("%d bodies are read beyond the %d whose turn it is", n, heldAtOnce)
	}
	written.Wait()
	for _, w := range open {
		_ = w.Close()
	}
	sending.Wait()
	if n := len(begun); n != senders-heldAtOnce {
		t.Errorf("%d bodies got their turn later, want %d", n, senders-heldAtOnce)
	}
}
