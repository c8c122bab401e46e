package telemetry

import (
	"io"
	"net/http"
)

// answer is a response that knows its status and size. Files still go to the socket by way
// of ReadFrom.
type answer struct {
	http.ResponseWriter
	status int // 0: nothing was answered
	bytes  int64
}

// Unwrap is for [http.ResponseController].
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// Flush sends what is in buffers.
func (a *answer) Flush() { _ = http.NewResponseController(a.ResponseWriter).Flush() }

func (a *answer) WriteHeader(status int) {
	if a.status == 0 && status >= http.StatusOK { // others come before the answer
		a.status = status
	}
	a.ResponseWriter.WriteHeader(status)
}

func (a *answer) Write(p []byte) (int, error) {
	a.began()
	n, err := a.ResponseWriter.Write(p)
	a.bytes += int64(n)
	return n, err
}

// ReadFrom hands on what it is given.
func (a *answer) ReadFrom(r io.Reader) (int64, error) {
	a.began()
	n, err := io.Copy(a.ResponseWriter, r)
	a.bytes += n
	return n, err
}

func (a *answer) began() {
	if a.status == 0 {
		a.status = http.StatusOK
	}
}

// countedBody is a body of which it is known how much was read.
type countedBody struct {
	io.ReadCloser
	bytes int64
}

func (b *countedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.bytes += int64(n)
	return n, err
}
