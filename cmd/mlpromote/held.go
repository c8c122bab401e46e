package main

import (
	"io"
	"net/http"
	"os"
	"strings"
	"time"
)

const (
	// heldFree is how much of a body that is held in memory everybody may send. Nearly all
	// manifests and requests are smaller.
	heldFree = 64 << 10
	// heldAtOnce is how many bodies beyond that are read at the same time. The largest has
	// 8 MiB, and takes some times as much while it is read.
	heldAtOnce = 8
)

// held bounds the memory that bodies take which are read as a whole: all but blobs. Beyond
// its first bytes a body waits for its turn, and then has to be there within limit.
func held(next http.Handler, limit time.Duration) http.Handler {
	turns := make(chan struct{}, heldAtOnce)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Body == nil || r.Body == http.NoBody || strings.HasPrefix(r.URL.Path, "/v2/") && strings.Contains(r.URL.Path, "/blobs/uploads/") {
			next.ServeHTTP(w, r)
			return
		}
		body := &heldBody{ReadCloser: r.Body, turns: turns, limit: limit, done: r.Context().Done(), free: heldFree}
		defer body.release()
		r = r.WithContext(r.Context()) // a copy: the server looks at its own for what was not read
		r.Body = body
		next.ServeHTTP(w, r)
	})
}

// heldBody takes a turn when it has read what is free.
type heldBody struct {
	io.ReadCloser
	turns chan struct{}
	done  <-chan struct{}
	limit time.Duration
	free  int       // bytes that are left of what is
	until time.Time // when the turn is over; zero: none was taken
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

// release gives the turn to the next.
func (b *heldBody) release() {
	if !b.until.IsZero() {
		<-b.turns
	}
}
