package host

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// fileWriter is a response that knows what was given to the kernel to copy.
type fileWriter struct {
	*httptest.ResponseRecorder
	chunks []int64
	other  int
}

func (w *fileWriter) ReadFrom(r io.Reader) (int64, error) {
	limited, ok := r.(*io.LimitedReader)
	if ok {
		_, ok = limited.R.(*os.File)
	}
	if !ok {
		w.other++
	}
	n, err := io.Copy(w.ResponseRecorder, r)
	w.chunks = append(w.chunks, n)
	return n, err
}

// What comes from a file is still copied by the kernel, which takes a file or one limit
// around it, and it all arrives.
func TestPacedKeepsReadFrom(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "blob")
	for _, size := range []int{0, 1, paceChunk - 1, paceChunk, paceChunk + 1, 3 * paceChunk} {
		content := bytes.Repeat([]byte("mlpromote"), size/9+1)[:size]
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		for _, ranges := range []string{"", "bytes=0-0"} {
			w := &fileWriter{ResponseRecorder: httptest.NewRecorder()}
			r := httptest.NewRequest(http.MethodGet, "/", nil)
			want := content
			if ranges != "" && size > 0 {
				r.Header.Set("Range", ranges)
				want = content[:1]
			}
			EndStalled(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { http.ServeFile(w, r, path) }), time.Minute).ServeHTTP(w, r)
			if w.other > 0 || size > 0 && len(w.chunks) == 0 {
				t.Errorf("%d bytes: copied in %d chunks, %d of them from no file", size, len(w.chunks), w.other)
			}
			if sha256.Sum256(w.Body.Bytes()) != sha256.Sum256(want) {
				t.Errorf("%d bytes, %q: got %d bytes, want %d", size, ranges, w.Body.Len(), len(want))
			}
		}
	}
}

// bodyWriter is a response that fails the test if it is to take a reader.
type bodyWriter struct {
	*httptest.ResponseRecorder
	t *testing.T
}

func (w bodyWriter) ReadFrom(io.Reader) (int64, error) {
	w.t.Error("a reader that is no file is passed on")
	return 0, errors.ErrUnsupported
}

// What comes from no file is copied in large pieces, with a limit around it and without.
func TestPacedCopiesOtherReaders(t *testing.T) {
	t.Parallel()
	content := bytes.Repeat([]byte("mlpromote"), 2*copyBuffer/9+1)
	for _, limit := range []int64{0, 1, copyBuffer, copyBuffer + 1} {
		var r io.Reader = struct{ io.Reader }{bytes.NewReader(content)}
		want := content
		if limit > 0 {
			r, want = io.LimitReader(r, limit), content[:limit]
		}
		inner := bodyWriter{httptest.NewRecorder(), t}
		w := &pacedWriter{ResponseWriter: inner, control: http.NewResponseController(inner), pause: time.Minute}
		if n, err := w.ReadFrom(r); err != nil || n != int64(len(want)) || !bytes.Equal(inner.Body.Bytes(), want) {
			t.Errorf("limit %d: copied %d bytes, error %v; got %d bytes, want %d", limit, n, err, inner.Body.Len(), len(want))
		}
	}
}

// pacedServer is a service with little patience. What comes of reading each body is told.
func pacedServer(t *testing.T, pause time.Duration, handler http.HandlerFunc) (address string) {
	t.Helper()
	server := httptest.NewServer(EndStalled(handler, pause))
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

func dial(t *testing.T, address string) *net.TCPConn {
	t.Helper()
	c, err := new(net.Dialer).DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c.(*net.TCPConn)
}

// A body that stops coming is given up. One that comes slowly is not.
func TestPacedBody(t *testing.T) {
	t.Parallel()
	const pause = 2 * time.Second // long, so that a busy machine does not look like a stalled client
	told := make(chan error, 1)
	address := pacedServer(t, pause, func(_ http.ResponseWriter, r *http.Request) {
		_, err := io.Copy(io.Discard, r.Body)
		told <- err
	})
	const head = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 12\r\n\r\n"
	stuck := dial(t, address)
	if _, err := io.WriteString(stuck, head+"one"); err != nil {
		t.Fatal(err)
	}
	if err := <-told; !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a body that stopped: %v, want a deadline", err)
	}
	slow := dial(t, address)
	if _, err := io.WriteString(slow, head); err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"one ", "two ", "thre"} { // more than the pause in all
		<-time.After(2 * pause / 5)
		if _, err := io.WriteString(slow, part); err != nil {
			t.Fatal(err)
		}
	}
	if err := <-told; err != nil {
		t.Errorf("a body that came slowly: %v", err)
	}
}

// An answer that nobody takes is given up.
func TestPacedAnswer(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "blob")
	if err := os.WriteFile(path, bytes.Repeat([]byte("x"), 64<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	address := pacedServer(t, 300*time.Millisecond, func(w http.ResponseWriter, r *http.Request) {
		defer close(ended)
		http.ServeFile(w, r, path)
	})
	if _, err := io.WriteString(dial(t, address), "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	select {
	case <-ended:
	case <-time.After(30 * time.Second):
		t.Error("the handler still writes to somebody who does not read")
	}
}

// A handler that thinks for longer than the pause, after it has read its body, is not taken
// for one whose client is gone, and the connection is good for another request.
func TestPacedThinking(t *testing.T) {
	t.Parallel()
	const pause = 500 * time.Millisecond
	address := pacedServer(t, pause, func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(w, r.Body); err != nil {
			t.Error(err)
		}
		select {
		case <-time.After(2 * pause):
		case <-r.Context().Done():
			t.Errorf("the request ended: %v", context.Cause(r.Context()))
		}
	})
	transport := &http.Transport{MaxConnsPerHost: 1}
	defer transport.CloseIdleConnections()
	for range 2 {
		response, err := (&http.Client{Transport: transport}).Post("http://"+address, "text/plain", strings.NewReader("echo"))
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(response.Body)
		if string(got) != "echo" || err != nil {
			t.Errorf("got %q, %v", got, err)
		}
		_ = response.Body.Close()
	}
}
