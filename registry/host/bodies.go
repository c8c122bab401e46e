package host

import (
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/storage"
)

const (
	// heldFree is how many bytes of a body are read without a reservation. Nearly all manifests and requests are smaller.
	heldFree = 64 << 10
	// heldLargest is the largest body that a route reads as a whole: a bundle with its figures, in base64. It is
	// also the reservation of a body that does not state its length.
	heldLargest = 12 << 20
)

// BodyBudget bounds the memory for request bodies that are read as a whole, which are all but blobs. To parse
// one takes a multiple of its size. The zero value of each field means its default.
type BodyBudget struct {
	Bytes     int64         // in flight: 48 MiB
	PerCaller int64         // in flight of one principal or, without one, of one address: half of Bytes
	Wait      time.Duration // for other bodies, before the caller is told to try again: 10 seconds
	Arrive    time.Duration // for a large body to arrive: no limit
}

// Bodies counts the bytes of request bodies in flight. Create one with [BodyBudget.Bodies].
type Bodies struct {
	BodyBudget
	mu      sync.Mutex
	all     int64
	callers map[string]int64
	freed   chan struct{} // closed when bytes are released
}

// Bodies returns the count of a service.
func (b BodyBudget) Bodies() *Bodies {
	if b.Bytes == 0 {
		b.Bytes = 48 << 20
	}
	if b.PerCaller == 0 {
		b.PerCaller = b.Bytes / 2
	}
	if b.Wait == 0 {
		b.Wait = 10 * time.Second
	}
	return &Bodies{BodyBudget: b, callers: make(map[string]int64), freed: make(chan struct{})}
}

// Limit bounds the bodies that a handler reads. The first 64 KiB of a body are free. To read more, the request
// reserves all of its bytes until it is answered. If they do not become free in time, reading fails with
// CodeUnavailable. Put it behind what identifies callers.
func (b *Bodies) Limit(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Body == nil || r.Body == http.NoBody || strings.HasPrefix(r.URL.Path, "/v2/") && strings.Contains(r.URL.Path, "/blobs/uploads/") {
			next.ServeHTTP(w, r)
			return
		}
		body := &heldBody{ReadCloser: r.Body, of: b, ctx: r.Context(), caller: callerOf(r), size: r.ContentLength, free: heldFree}
		if body.size < 0 || body.size > heldLargest { // longer bodies are refused or cut
			body.size = heldLargest
		}
		defer body.release()
		r = r.WithContext(r.Context()) // a copy: the server reads the rest of its own body
		r.Body = body
		next.ServeHTTP(w, r)
	})
}

// callerOf returns the principal, or the address that a request comes from.
func callerOf(r *http.Request) string {
	if p, ok := storage.PrincipalOf(r.Context()); ok && p.Name != "" {
		return "principal " + p.Name
	}
	address, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		address = r.RemoteAddr
	}
	return "address " + address
}

// reserve waits for n bytes. Errors: CodeUnavailable; the cause of ctx.
func (b *Bodies) reserve(ctx context.Context, caller string, n int64) error {
	timeout := time.NewTimer(b.Wait)
	defer timeout.Stop()
	for {
		freed, ok := b.try(caller, n)
		if ok {
			return nil
		}
		select {
		case <-freed:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-timeout.C:
			return registry.Errorf(registry.CodeUnavailable,
				"the service is busy with other large requests, and did not read this one of up to %d bytes: try again", n)
		}
	}
}

// try reserves n bytes, or returns a channel that is closed when bytes are released. A body beyond a bound is
// read when there is no other.
func (b *Bodies) try(caller string, n int64) (freed <-chan struct{}, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if own := b.callers[caller]; own > 0 && own+n > b.PerCaller || b.all > 0 && b.all+n > b.Bytes {
		return b.freed, false
	}
	b.all += n
	b.callers[caller] += n
	return nil, true
}

func (b *Bodies) release(caller string, n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.all -= n
	if b.callers[caller] -= n; b.callers[caller] == 0 {
		delete(b.callers, caller)
	}
	close(b.freed)
	b.freed = make(chan struct{})
}

// heldBody makes a reservation after its first bytes.
type heldBody struct {
	io.ReadCloser
	of     *Bodies
	ctx    context.Context //nolint:containedctx // of the request, like the body
	caller string
	size   int64     // to reserve
	free   int       // bytes left that need no reservation
	held   bool      // whether there is one
	until  time.Time // when it expires; zero: never
}

func (b *heldBody) Read(p []byte) (int, error) {
	switch {
	case b.free > 0:
		p = p[:min(len(p), b.free)]
	case !b.held && b.size > heldFree:
		if err := b.of.reserve(b.ctx, b.caller, b.size); err != nil {
			return 0, err
		}
		if b.held = true; b.of.Arrive > 0 {
			b.until = time.Now().Add(b.of.Arrive)
		}
	case !b.until.IsZero() && time.Now().After(b.until):
		return 0, os.ErrDeadlineExceeded
	}
	n, err := b.ReadCloser.Read(p)
	b.free -= n
	return n, err
}

// release ends the reservation.
func (b *heldBody) release() {
	if b.held {
		b.of.release(b.caller, b.size)
	}
}
