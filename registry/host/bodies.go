package host

import (
	"io"
	"net/http"
	"os"
	"strings"
	"time"
)

const (
	// heldFree is how many bytes of a body are read without waiting. Nearly all manifests and
	// requests are smaller.
	heldFree = 64 << 10
	// heldAtOnce is how many larger bodies are read at the same time. The largest has 8 MiB,
	// and parsing takes a multiple of that in memory.
	heldAtOnce = 8
)

// LimitBodies bounds the memory for request bodies that are read as a whole, which are all but
// blobs. The first 64 KiB of a body are read at once. To read more, the request waits for one
// of 8 slots, and the body must then arrive within limit.
func LimitBodies(next http.Handler, limit time.Duration) http.Handler {
	turns := make(chan struct{}, heldAtOnce)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Body == nil || r.Body == http.NoBody || strings.HasPrefix(r.URL.Path, "/v2/") && strings.Contains(r.URL.Path, "/blobs/uploads/") {
			next.ServeHTTP(w, r)
			return
		}
		body := &heldBody{ReadCloser: r.Body, turns: turns, limit: limit, done: r.Context().Done(), free: heldFree}
		defer body.release()
		r = r.WithContext(r.Context()) // a copy: the server reads the rest of its own body
		r.Body = body
		next.ServeHTTP(w, r)
	})
}

// heldBody takes a slot after its first bytes.
type heldBody struct {
	io.ReadCloser
	turns chan struct{}
	done  <-chan struct{}
	limit time.Duration
	free  int       // bytes left that need no slot
	until time.Time // when the slot expires; zero before it has one
}

func (b *heldBody) Read(p []byte) (int, error) {
	switch {
	case b.free > 0:
		p = p[:min(len(p), b.free)]
	case b.until.IsZero():
		select {
		case b.turns <- struct{}{}:
			b.until = time.Now().Add(b.limit)
		case <-b.done:
			return 0, io.ErrUnexpectedEOF
		}
	case time.Now().After(b.until):
		return 0, os.ErrDeadlineExceeded
	}
	n, err := b.ReadCloser.Read(p)
	b.free -= n
	return n, err
}

// release returns the slot.
func (b *heldBody) release() {
	if !b.until.IsZero() {
		<-b.turns
	}
}
