package host

import (
	"io"
	"math"
	"net/http"
	"sync"
	"syscall"
	"time"
)

// paceChunk is how many bytes of a file are passed to the kernel at a time. A client must read
// that many within a pause. Linux moves 64 KiB of a file at once, and sends at most 64 KiB with
// headers as one unit: 60 KiB, of whole pages, are never split, which takes half of the time
// ([measured]).
//
// [measured]: docs/benchmarks.md
const paceChunk = 60 << 10

// EndStalled closes connections that make no progress for longer than pause: the client sends no more of its
// body, or reads no more of the answer. A body may take any time while bytes arrive. Files that the inner
// handler writes still go from the kernel to the socket (sendfile).
func EndStalled(next http.Handler, pause time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p := &pacedWriter{ResponseWriter: w, control: http.NewResponseController(w), pause: pause}
		reads := false
		if r.Body != nil && r.Body != http.NoBody {
			body := &pacedBody{ReadCloser: r.Body, control: p.control, pause: pause}
			r = r.WithContext(r.Context()) // a copy: the server reads the rest of its own body
			r.Body = body
			reads = true
			defer func() { body.moved = time.Time{}; body.move() }()
			body.move()
		}
		p.move()
		next.ServeHTTP(p, r)
		// The server now reads the rest of a small body, for at most one pause, and then writes
		// its buffers.
		if now := time.Now(); reads || p.isDue(now) {
			_ = p.control.SetWriteDeadline(now.Add(2 * pause))
		}
	})
}

// pacedBody extends the read deadline with every read.
type pacedBody struct {
	io.ReadCloser
	control *http.ResponseController
	pause   time.Duration
	moved   time.Time
}

func (b *pacedBody) move() {
	if now := time.Now(); now.Sub(b.moved) > b.pause/paceSteps {
		b.moved = now
		_ = b.control.SetReadDeadline(now.Add(b.pause)) // fails only where there is no connection, as in tests
	}
}

func (b *pacedBody) Read(p []byte) (int, error) {
	b.move()
	return b.ReadCloser.Read(p)
}

// paceSteps bounds how often a deadline is extended within a pause.
const paceSteps = 16

// pacedWriter extends the write deadline with every write.
type pacedWriter struct {
	http.ResponseWriter
	control *http.ResponseController
	pause   time.Duration
	moved   time.Time
}

// isDue reports whether a step has passed since the deadline was extended.
func (w *pacedWriter) isDue(now time.Time) bool { return now.Sub(w.moved) > w.pause/paceSteps }

func (w *pacedWriter) move() {
	if now := time.Now(); w.isDue(now) {
		w.moved = now
		_ = w.control.SetWriteDeadline(now.Add(w.pause)) // as above
	}
}

// Unwrap is for [http.ResponseController].
func (w *pacedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Flush sends buffered data.
func (w *pacedWriter) Flush() { _ = w.control.Flush() }

func (w *pacedWriter) Write(p []byte) (int, error) {
	w.move()
	return w.ResponseWriter.Write(p)
}

// copyBuffer is how many bytes of what is no file are copied at a time.
const copyBuffer = 128 << 10

var copyBuffers = sync.Pool{New: func() any { return new([copyBuffer]byte) }}

// ReadFrom lets the kernel copy a file to the socket, one chunk at a time.
func (w *pacedWriter) ReadFrom(r io.Reader) (total int64, err error) {
	left := &io.LimitedReader{R: r, N: math.MaxInt64}
	if limited, ok := r.(*io.LimitedReader); ok { // the kernel copies a file behind one LimitedReader, not behind two
		left = limited
	}
	to, takes := w.ResponseWriter.(io.ReaderFrom)
	if _, file := left.R.(syscall.Conn); !takes || !file {
		buffer := copyBuffers.Get().(*[copyBuffer]byte)
		defer copyBuffers.Put(buffer)
		return io.CopyBuffer(struct{ io.Writer }{w}, struct{ io.Reader }{r}, buffer[:])
	}
	chunk := &io.LimitedReader{R: left.R}
	for left.N > 0 {
		w.move()
		chunk.N = min(left.N, paceChunk)
		want := chunk.N
		n, err := to.ReadFrom(chunk)
		total += n
		left.N -= n
		if err != nil || n < want {
			return total, err
		}
	}
	return total, nil
}
