package registrytest

import (
	"context"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"testing"
)

// Network is a way to a service that loses connections: it passes bytes on and, until it
// has broken enough of them, closes a connection in the middle. The same seed breaks
// connections after the same numbers of bytes, in the order in which they are made.
type Network struct {
	listener net.Listener
	to       string
	limit    int64
	cuts     int64

	mu     sync.Mutex
	random *rand.Rand

	up, down, broken atomic.Int64
}

// NewNetwork begins to pass on what comes to its own address, until the test ends. Each
// way of a connection is cut after limit/2 to limit bytes, cuts times in all.
func NewNetwork(t testing.TB, to string, seed uint64, limit, cuts int64) *Network {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	must(t, err)
	n := &Network{listener: listener, to: to, limit: limit, cuts: cuts, random: rand.New(rand.NewPCG(seed, 0))} //nolint:gosec // it is to be the same every time
	t.Cleanup(func() { _ = listener.Close() })
	go n.accept(t.Context())
	return n
}

// Host is HOST:PORT of this end.
func (n *Network) Host() string { return n.listener.Addr().String() }

// Up is the number of bytes that went to the service.
func (n *Network) Up() int64 { return n.up.Load() }

// Down is the number of bytes that came from the service.
func (n *Network) Down() int64 { return n.down.Load() }

// Broken is the number of connections that were cut.
func (n *Network) Broken() int64 { return n.broken.Load() }

func (n *Network) accept(ctx context.Context) {
	var dialer net.Dialer
	for {
		near, err := n.listener.Accept()
		if err != nil {
			return // the test has ended
		}
		far, err := dialer.DialContext(ctx, "tcp", n.to)
		if err != nil {
			_ = near.Close() // as a network does beyond which nobody is
			continue
		}
		go n.pass(far, near, n.draw(), &n.up)
		go n.pass(near, far, n.draw(), &n.down)
	}
}

// draw gives the number of bytes after which a way is cut.
func (n *Network) draw() int64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.limit/2 + n.random.Int64N(n.limit/2+1)
}

// pass copies one way until it ends or is cut, and then closes both.
func (n *Network) pass(to, from net.Conn, limit int64, count *atomic.Int64) {
	defer func() { _, _ = to.Close(), from.Close() }() // one may be closed
	buffer := make([]byte, 4096)
	for passed := int64(0); ; {
		got, err := from.Read(buffer)
		if _, failed := to.Write(buffer[:got]); failed != nil || err != nil {
			return
		}
		passed += int64(got)
		count.Add(int64(got))
		if passed >= limit && n.cut() {
			return
		}
	}
}

// cut reports whether one more connection is to be broken.
func (n *Network) cut() bool {
	if n.broken.Add(1) <= n.cuts {
		return true
	}
	n.broken.Add(-1)
	return false
}
