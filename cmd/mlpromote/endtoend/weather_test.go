//go:build cgo

package endtoend

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"mlpromote.dev/mlpromote/registry/storage"
)

// What a way does in a storm to what passes: of so many reads one is lost with its connection,
// and two wait a moment, or, now and then, long.
const (
	stormyReads = 800
	shortDelay  = 600 * time.Millisecond // at most
	longDelay   = 6 * time.Second        // at most
	longDelays  = 12                     // of so many delays one is long
)

// way is a way to a service, on which there may be a storm.
type way struct {
	url     string // of the service, by this way
	running sync.WaitGroup
	over    chan struct{} // closed when the test ends
	storm   atomic.Bool

	mu     sync.Mutex
	random *rand.Rand
}

// newWay makes a way to the service of a URL. What was under way has ended when the test ends.
func newWay(t *testing.T, to string, seed uint64) *way {
	t.Helper()
	u, err := url.Parse(to)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &way{random: rand.New(rand.NewPCG(seed, 1)), over: make(chan struct{})}
	target := u.Host
	w.running.Go(func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			far, err := new(net.Dialer).DialContext(t.Context(), "tcp", target)
			if err != nil {
				_ = near.Close()
				continue
			}
			w.carry(near, far)
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		close(w.over)
		w.running.Wait()
	})
	u.Host = listener.Addr().String()
	w.url = u.String()
	return w
}

// carry passes both directions of a connection, until one ends or the test does.
func (w *way) carry(near, far net.Conn) {
	ended := make(chan struct{})
	closeBoth := sync.OnceFunc(func() {
		close(ended)
		_, _ = near.Close(), far.Close() // one may be closed
	})
	for _, direction := range [][2]net.Conn{{near, far}, {far, near}} {
		w.running.Go(func() {
			defer closeBoth()
			w.pass(direction[1], direction[0], ended)
		})
	}
	w.running.Go(func() {
		select {
		case <-w.over:
			closeBoth()
		case <-ended:
		}
	})
}

// pass copies one direction of a connection.
func (w *way) pass(to, from net.Conn, ended <-chan struct{}) {
	buffer := make([]byte, 16<<10)
	for {
		n, err := from.Read(buffer)
		delay, lost := w.draw()
		if lost {
			return
		}
		if delay > 0 {
			select {
			case <-time.After(delay):
			case <-ended:
				return
			}
		}
		if _, failed := to.Write(buffer[:n]); failed != nil || err != nil {
			return
		}
	}
}

// draw says how long what was read waits, or that it is lost.
func (w *way) draw() (delay time.Duration, lost bool) {
	if !w.storm.Load() {
		return 0, false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	switch w.random.IntN(stormyReads) {
	case 0:
		return 0, true
	case 1, 2:
		most := shortDelay
		if w.random.IntN(longDelays) == 0 {
			most = longDelay
		}
		return time.Duration(w.random.Int64N(int64(most))), false
	}
	return 0, false
}

// repeatsWithin is how long after a deletion its repetition comes at most: for some of them the
// store still carries it out.
const repeatsWithin = storage.PermitTime + storage.RemovalMargin

// newRepeater makes a load balancer in front of an object store that sends each DELETE once more,
// some time later, and returns its URL.
func newRepeater(t *testing.T, to string, seed uint64) string {
	t.Helper()
	target, err := url.Parse(to)
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	random := rand.New(rand.NewPCG(seed, 2))
	ctx, cancel := context.WithCancel(context.Background())
	var repeating sync.WaitGroup
	repeat := func(u url.URL, host string, header http.Header) {
		mu.Lock()
		delay := time.Duration(random.Int64N(int64(repeatsWithin)))
		mu.Unlock()
		select {
		case <-ctx.Done():
			return
		case <-time.After(delay):
		}
		request, err := http.NewRequestWithContext(ctx, http.MethodDelete, u.String(), http.NoBody)
		if err != nil {
			t.Error(err)
			return
		}
		request.Host, request.Header = host, header
		if answer, err := http.DefaultClient.Do(request); err == nil { // the store may have ended
			_ = answer.Body.Close()
		}
	}
	proxy := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Host = r.In.Host // signatures cover it
			if r.In.Method == http.MethodDelete {
				repeating.Go(func() { repeat(*r.Out.URL, r.In.Host, r.In.Header.Clone()) })
			}
		},
		ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo), // clients are cut off all the time
	})
	t.Cleanup(func() {
		proxy.Close()
		cancel()
		repeating.Wait()
	})
	return proxy.URL
}
