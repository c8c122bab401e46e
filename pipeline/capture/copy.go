package capture

import (
	"io"
	"sync"
	"sync/atomic"
)

// budget is the memory that copies may take together.
type budget struct{ left atomic.Int64 }

// take takes n bytes, where there are as many.
func (b *budget) take(n int64) bool {
	if b.left.Add(-n) >= 0 {
		return true
	}
	b.left.Add(n)
	return false
}

// bodyCopy collects a body while it passes. It gives up, and never makes the body wait, where it
// becomes too large or there is no memory. The transport may still read the body after the answer, so that
// it is safe for concurrent use.
type bodyCopy struct {
	budget *budget

	mu     sync.Mutex
	data   []byte
	taken  int64 // from the budget
	ended  bool  // the body was read to its end
	failed string
	closed bool
}

func (c *bodyCopy) add(p []byte, ended bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || c.failed != "" {
		return
	}
	if int64(len(c.data)+len(p)) > maxBody {
		c.fail(skipLarge)
		return
	}
	if missing := len(c.data) + len(p) - cap(c.data); missing > 0 {
		grown := max(2*int64(cap(c.data)), int64(len(c.data)+len(p)), 4<<10)
		if !c.budget.take(grown) { // the old and the new are in memory for a moment
			c.fail(skipBusy)
			return
		}
		data := make([]byte, len(c.data), grown)
		copy(data, c.data)
		c.budget.left.Add(c.taken)
		c.data, c.taken = data, grown
	}
	c.data = append(c.data, p...)
	c.ended = c.ended || ended
}

// fail gives up. The caller holds the lock.
func (c *bodyCopy) fail(reason string) {
	c.budget.left.Add(c.taken)
	c.data, c.taken, c.failed = nil, 0, reason
}

// take ends the copy and returns it, where the body passed as a whole. length is the bytes that it has to
// have, or below 0. The caller releases it.
func (c *bodyCopy) take(length int64) (data []byte, reason string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	switch {
	case c.failed != "":
		return nil, c.failed
	case !c.ended && int64(len(c.data)) != length:
		return nil, skipBroken
	}
	return c.data, ""
}

// release gives the memory back.
func (c *bodyCopy) release() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	c.budget.left.Add(c.taken)
	c.data, c.taken = nil, 0
}

// tee is a body that is copied while it is read.
type tee struct {
	io.ReadCloser
	to *bodyCopy
}

// Read reads the body and copies the bytes.
func (t *tee) Read(p []byte) (int, error) {
	n, err := t.ReadCloser.Read(p)
	t.to.add(p[:n], err == io.EOF) // readers return io.EOF itself
	return n, err
}
