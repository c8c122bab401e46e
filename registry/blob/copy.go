package blob

import (
	"cmp"
	"errors"
	"io"
	"sync"
)

const (
	// copyBytes is how much is read, hashed and written at a time: enough that passing it to
	// another goroutine costs little in comparison.
	copyBytes = 512 << 10
	// copyBuffers lets the hash fall behind and catch up. With only two, one side would always
	// wait.
	copyBuffers = 4
	// firstBytes is the size up to which content is hashed without another goroutine. Most
	// content is smaller.
	firstBytes = 32 << 10
)

// Buffers are reused: a push takes some for each part that it records, and unused ones would
// count as memory until the garbage collector runs.
var (
	firstBuffers = pool(firstBytes)
	largeBuffers = pool(copyBytes)
)

func pool(size int) *sync.Pool {
	return &sync.Pool{New: func() any { b := make([]byte, size); return &b }}
}

// copyHashed copies r to w, and hashes in another goroutine at the same time, because hashing
// takes as long as everything else. It returns how many bytes w accepted. Also after an error,
// hash has had exactly those bytes.
func copyHashed(w, hash io.Writer, r io.Reader) (int64, error) {
	first := firstBuffers.Get().(*[]byte)
	n, err := copyBuffer(w, hash.Write, r, *first)
	firstBuffers.Put(first)
	if err != nil {
		return n, withoutEOF(err)
	}
	b := startHashing(hash)
	defer b.wait()
	for err == nil {
		var more int64
		more, err = b.copyBuffer(w, r)
		n += more
	}
	return n, withoutEOF(err)
}

// copyBuffer copies what fits into the buffer. It returns the error that ended the copy, which
// can be io.EOF.
func copyBuffer(w io.Writer, hash func([]byte) (int, error), r io.Reader, buffer []byte) (int64, error) {
	n, err := fill(buffer, r)
	written, failure := w.Write(buffer[:n])
	_, _ = hash(buffer[:written]) // never fails
	return int64(written), cmp.Or(failure, err)
}

// fill reads until the buffer is full. Unlike io.ReadFull it returns the reader's error
// unchanged, so that truncated content is not taken for complete content.
func fill(buffer []byte, r io.Reader) (n int, err error) {
	for n < len(buffer) && err == nil {
		var more int
		more, err = r.Read(buffer[n:])
		n += more
	}
	return n, err
}

func withoutEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// hashing is a hash that runs in a goroutine. It uses some of the buffers while the caller
// fills another.
type hashing struct {
	full  chan filled
	empty chan *[]byte
	done  chan struct{}
}

// filled is a buffer with n bytes in it.
type filled struct {
	buffer *[]byte
	n      int
}

// startHashing starts a goroutine, which ends when the caller waits for it.
func startHashing(hash io.Writer) *hashing {
	h := &hashing{full: make(chan filled, copyBuffers), empty: make(chan *[]byte, copyBuffers), done: make(chan struct{})}
	for range copyBuffers {
		h.empty <- largeBuffers.Get().(*[]byte)
	}
	go func() {
		defer close(h.done)
		for f := range h.full {
			_, _ = hash.Write((*f.buffer)[:f.n]) // never fails
			h.empty <- f.buffer
		}
	}()
	return h
}

// copyBuffer copies what fits into an empty buffer, and passes on what was written.
func (h *hashing) copyBuffer(w io.Writer, r io.Reader) (int64, error) {
	b := <-h.empty
	hand := func(written []byte) (int, error) {
		h.full <- filled{b, len(written)}
		return len(written), nil
	}
	return copyBuffer(w, hand, r, *b)
}

// wait waits until everything is hashed, and returns the buffers.
func (h *hashing) wait() {
	close(h.full)
	<-h.done
	for range copyBuffers {
		largeBuffers.Put(<-h.empty)
	}
}
