//go:build cgo

package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/programtest"
)

// TestStopFinishesUploads asks a service to stop in the middle of a chunk. First it says
// that it is not ready, then it takes nobody more; the chunk is taken to its end and
// acknowledged, and the process ends well. The next process goes on with the upload.
func TestStopFinishesUploads(t *testing.T) {
	t.Parallel()
	s := programtest.Serve(t, fastProgram(t), "listen: 127.0.0.1:0\nshutdown_delay: 1s\n")
	response, _ := programtest.Send(t, programtest.Fresh(), http.MethodPost, s.URL+"/v2/staging/digits/blobs/uploads/")
	if response.StatusCode != http.StatusAccepted {
		t.Fatalf("begin: %s", response.Status)
	}
	location := response.Header.Get("Location")
	half := strings.Repeat("x", 1<<20)
	body, chunk := io.Pipe()
	type outcome struct {
		status int
		err    error
	}
	patched := make(chan outcome, 1)
	go func() {
		request, err := http.NewRequestWithContext(context.WithoutCancel(t.Context()), http.MethodPatch, s.URL+location, body)
		if err != nil {
			patched <- outcome{0, err}
			return
		}
		response, err := programtest.Fresh().Do(request)
		if err == nil {
			err = response.Body.Close()
			patched <- outcome{response.StatusCode, err}
			return
		}
		patched <- outcome{0, err}
	}()
	if _, err := io.WriteString(chunk, half); err != nil {
		t.Fatal(err)
	}
	programtest.Eventually(t, "half of the chunk arrives", func() bool {
		arriving, err := filepath.Glob(filepath.Join(s.Dir, "incoming", "*"))
		if err != nil || len(arriving) != 1 {
			return false
		}
		info, err := os.Stat(arriving[0])
		return err == nil && info.Size() > 0
	})

	if err := s.Process().Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	programtest.Eventually(t, "/readyz says no", func() bool {
		response, _ := programtest.Send(t, programtest.Fresh(), http.MethodGet, s.URL+"/readyz")
		return response.StatusCode == http.StatusServiceUnavailable
	})
	if response, _ := programtest.Send(t, programtest.Fresh(), http.MethodGet, s.URL+"/healthz"); response.StatusCode != http.StatusNoContent {
		t.Errorf("/healthz: %s, want it to be well still", response.Status)
	}
	programtest.Eventually(t, "connections are refused", func() bool {
		c, err := new(net.Dialer).DialContext(t.Context(), "tcp", s.Host())
		if err == nil {
			_ = c.Close()
		}
		return err != nil
	})
	if _, err := io.WriteString(chunk, half); err != nil {
		t.Fatal(err)
	}
	if err := chunk.Close(); err != nil {
		t.Fatal(err)
	}
	if got := <-patched; got.status != http.StatusAccepted || got.err != nil {
		t.Errorf("the chunk: status %d, %v; want 202", got.status, got.err)
	}
	if err := s.Wait(); err != nil {
		t.Errorf("serve ended with %v\n%s", err, s.Said())
	}

	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	d := digest.FromString(half + half)
	if response, content := programtest.Send(t, programtest.Fresh(), http.MethodPut,
		s.URL+location+"?digest="+d.String()); response.StatusCode != http.StatusCreated {
		t.Errorf("finish: %s: %s", response.Status, content)
	}
	if _, content := programtest.Send(t, programtest.Fresh(), http.MethodGet,
		s.URL+"/v2/staging/digits/blobs/"+d.String()); digest.FromBytes(content) != d {
		t.Errorf("pulled %d bytes that are not what was pushed", len(content))
	}
	if err := s.Stop(); err != nil {
		t.Error(err)
	}
}

// TestStopGivesUp does not wait for ever for who does not finish.
func TestStopGivesUp(t *testing.T) {
	t.Parallel()
	s := programtest.Serve(t, fastProgram(t), "listen: 127.0.0.1:0\nshutdown_grace: 100ms\n")
	c := dial(t, s.Host())
	if _, err := io.WriteString(c,
		"POST /v2/staging/digits/blobs/uploads/?digest="+digest.FromString("never").String()+" HTTP/1.1\r\nHost: "+s.Host()+"\r\nContent-Length: 1000000\r\n\r\nne"); err != nil {
		t.Fatal(err)
	}
	programtest.Eventually(t, "the upload begins", func() bool {
		found, err := filepath.Glob(filepath.Join(s.Dir, "incoming", "*"))
		return err == nil && len(found) == 1
	})
	err := s.Stop()
	if err == nil || s.ExitCode() != 1 || !strings.Contains(s.Said(), "did not finish in 100ms") {
		t.Errorf("serve ended with %v\n%s", err, s.Said())
	}
}

// TestSlowClients gives up who does not get on: with the headers, with a body, or after
// an answer; and who sends more than anybody needs.
func TestSlowClients(t *testing.T) {
	t.Parallel()
	// Only a service that answers nothing here has a short header_timeout: on a busy machine it can
	// end any connection before the headers are read.
	quick := programtest.Serve(t, fastProgram(t), "listen: 127.0.0.1:0\nheader_timeout: 200ms\n")
	s := programtest.Serve(t, fastProgram(t), "listen: 127.0.0.1:0\nheader_timeout: 1h\nbody_timeout: 1s\nidle_timeout: 200ms\nmax_header_bytes: 4096\n")
	host := "Host: " + s.Host() + "\r\n"
	manifest := "PUT /v2/staging/digits/manifests/1.0.0 HTTP/1.1\r\n" + host
	for name, c := range map[string]struct {
		sends string
		want  string // begin of the answer; empty: the connection just ends
	}{
		"half a header":            {"GET /v2/ HTTP/1.1\r\n" + host + "X: ", ""},
		"nothing at all":           {"", ""},
		"nothing after an answer":  {"GET /healthz HTTP/1.1\r\n" + host + "\r\n", "HTTP/1.1 204"},
		"half a body":              {manifest + "Content-Length: 1000\r\n\r\n{", "HTTP/1.1 400"},
		"half a chunk":             {manifest + "Transfer-Encoding: chunked\r\n\r\n5\r\n{", "HTTP/1.1 400"},
		"too many headers":         {"GET /v2/ HTTP/1.1\r\n" + host + strings.Repeat("X: "+strings.Repeat("x", 100)+"\r\n", 200) + "\r\n", "HTTP/1.1 431"},
		"a body that nobody reads": {"POST /nowhere HTTP/1.1\r\n" + host + "Content-Length: 1000\r\n\r\n{", "HTTP/1.1 404"},
		"too large a manifest":     {manifest + "Content-Length: 1000000000000\r\n\r\n{", "HTTP/1.1 413"},
		"too large a REST request": {"POST /api/v1/models/digits/promote HTTP/1.1\r\n" + host + "Content-Type: application/json\r\nContent-Length: 1000000000000\r\n\r\n{\"", "HTTP/1.1 4"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address := s.Host()
			if c.want == "" {
				address = quick.Host()
			}
			conn := dial(t, address)
			if err := conn.SetDeadline(time.Now().Add(2 * time.Minute)); err != nil {
				t.Fatal(err)
			}
			if _, err := io.WriteString(conn, c.sends); err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(conn) // until the service hangs up
			if errors.Is(err, os.ErrDeadlineExceeded) || !bytes.HasPrefix(got, []byte(c.want)) {
				t.Errorf("got %q, %v; want %q and an end", got, err, c.want)
			}
		})
	}
}

func dial(t *testing.T, address string) net.Conn {
	t.Helper()
	c, err := new(net.Dialer).DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}
