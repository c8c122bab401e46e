package telemetry

import (
	"io"
	"net/http"
)

// answer records the status and size of a response. Files are still sent through ReadFrom
// (sendfile).
type answer struct {
	http.ResponseWriter
	status int // 0: no response was sent
	bytes  int64
}

// Unwrap is for [http.ResponseController].
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// Flush sends buffered data.
func (a *answer) Flush() { _ = http.NewResponseController(a.ResponseWriter).Flush() }

func (a *answer) WriteHeader(status int) {
	if a.status == 0 && status >= http.StatusOK { // informational responses come before the final one
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

// ReadFrom passes the call on.
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

// countedBody counts the bytes read from a request body.
type countedBody struct {
	io.ReadCloser
	bytes int64
}

func (b *countedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.bytes += int64(n)
	return n, err
}
