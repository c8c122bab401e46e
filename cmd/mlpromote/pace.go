package main

import (
	"io"
	"math"
	"net/http"
	"time"
)

// paceChunk is how much of a file is handed to the kernel at a time, and so what a client
// must take within a pause: enough that the calls cost nothing.
const paceChunk = 1 << 20

// paced ends connections that stand still: a request whose body does not come, or an answer
// that nobody takes, for longer than pause. A body may take as long as it likes while it
// moves. What the inner handler writes from a file goes to the socket without passing here.
func paced(next http.Handler, pause time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p := &pacedWriter{ResponseWriter: w, control: http.NewResponseController(w), pause: pause}
		if r.Body != nil && r.Body != http.NoBody {
			body := &pacedBody{ReadCloser: r.Body, control: p.control, pause: pause}
			r = r.WithContext(r.Context()) // a copy: the server looks at its own for what was not read
			r.Body = body
			defer func() { body.moved = time.Time{}; body.move() }()
			body.move()
		}
		p.move()
		next.ServeHTTP(p, r)
		// The server now reads what is left of a small body, for a pause at most, and then
		// writes what is still in its buffers.
		_ = p.control.SetWriteDeadline(time.Now().Add(2 * pause))
	})
}

// pacedBody moves the deadline of reading with every read.
type pacedBody struct {
	io.ReadCloser
	control *http.ResponseController
	pause   time.Duration
	moved   time.Time
}

func (b *pacedBody) move() {
	if now := time.Now(); now.Sub(b.moved) > b.pause/paceSteps {
		b.moved = now
		_ = b.control.SetReadDeadline(now.Add(b.pause)) // what has no deadlines is no connection
	}
}

func (b *pacedBody) Read(p []byte) (int, error) {
	b.move()
	return b.ReadCloser.Read(p)
}

// paceSteps is how often in a pause a deadline is moved at most.
const paceSteps = 16

// pacedWriter moves the deadline of writing with every write.
type pacedWriter struct {
	http.ResponseWriter
	control *http.ResponseController
	pause   time.Duration
	moved   time.Time
}

func (w *pacedWriter) move() {
	if now := time.Now(); now.Sub(w.moved) > w.pause/paceSteps {
		w.moved = now
		_ = w.control.SetWriteDeadline(now.Add(w.pause)) // as above
	}
}

// Unwrap is for [http.ResponseController].
func (w *pacedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Flush sends what is in buffers.
func (w *pacedWriter) Flush() { _ = w.control.Flush() }

func (w *pacedWriter) Write(p []byte) (int, error) {
	w.move()
	return w.ResponseWriter.Write(p)
}

// ReadFrom keeps the way from a file to the socket open, a chunk at a time.
func (w *pacedWriter) ReadFrom(r io.Reader) (total int64, err error) {
	to, ok := w.ResponseWriter.(io.ReaderFrom)
	if !ok {
		return io.Copy(struct{ io.Writer }{w}, r)
	}
	left := &io.LimitedReader{R: r, N: math.MaxInt64}
	if limited, ok := r.(*io.LimitedReader); ok { // the kernel copies from a file behind one limit, not behind two
		left = limited
	}
	for left.N > 0 {
		w.move()
		chunk := &io.LimitedReader{R: left.R, N: min(left.N, paceChunk)}
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
