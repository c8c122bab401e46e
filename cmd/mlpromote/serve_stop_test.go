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
)

// newServed is a service over an empty directory, with settings.
func newServed(t *testing.T, settings string) *served {
	t.Helper()
	root := t.TempDir()
	s := &served{program: fastProgram(t), dir: filepath.Join(root, "served"), env: environment(root, testCache(t))}
	if err := errors.Join(os.Mkdir(s.dir, 0o755), os.WriteFile(filepath.Join(s.dir, configFile), []byte(settings), 0o600)); err != nil {
		t.Fatal(err)
	}
	if err := s.start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.kill)
	return s
}

// fresh is a client whose every request has a connection of its own.
func fresh() *http.Client { return &http.Client{Transport: &http.Transport{DisableKeepAlives: true}} }

// answered is an answer whose body was read.
type answered struct {
	StatusCode int
	Status     string
	Header     http.Header
}

// send does a request without a body and gives the answer.
func send(t *testing.T, c *http.Client, method, url string) (answered, []byte) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := c.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answered{response.StatusCode, response.Status, response.Header}, content
}

// eventually asks until it is true.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !is(); {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within 30 s", what)
		}
		<-time.After(5 * time.Millisecond)
	}
}

// TestStopFinishesUploads asks a service to stop in the middle of a chunk. First it says
// that it is not ready, then it takes nobody more; the chunk is taken to its end and
// acknowledged, and the process ends well. The next process goes on with the upload.
func TestStopFinishesUploads(t *testing.T) {
	t.Parallel()
	s := newServed(t, "listen: 127.0.0.1:0\nshutdown_delay: 1s\n")
	response, _ := send(t, fresh(), http.MethodPost, s.url+"/v2/staging/digits/blobs/uploads/")
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
		request, err := http.NewRequestWithContext(context.WithoutCancel(t.Context()), http.MethodPatch, s.url+location, body)
		if err != nil {
			patched <- outcome{0, err}
			return
		}
		response, err := fresh().Do(request)
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
	eventually(t, "half of the chunk arrives", func() bool {
		arriving, err := filepath.Glob(filepath.Join(s.dir, "incoming", "*"))
		if err != nil || len(arriving) != 1 {
			return false
		}
		info, err := os.Stat(arriving[0])
		return err == nil && info.Size() > 0
	})

	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	eventually(t, "/readyz says no", func() bool {
		response, _ := send(t, fresh(), http.MethodGet, s.url+"/readyz")
		return response.StatusCode == http.StatusServiceUnavailable
	})
	if response, _ := send(t, fresh(), http.MethodGet, s.url+"/healthz"); response.StatusCode != http.StatusNoContent {
		t.Errorf("/healthz: %s, want it to be well still", response.Status)
	}
	eventually(t, "connections are refused", func() bool {
		c, err := new(net.Dialer).DialContext(t.Context(), "tcp", s.host())
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
	if err := s.cmd.Wait(); err != nil {
		t.Errorf("serve ended with %v\n%s", err, s.stderr.String())
	}

	if err := s.start(); err != nil {
		t.Fatal(err)
	}
	d := digest.FromString(half + half)
	if response, content := send(t, fresh(), http.MethodPut, s.url+location+"?digest="+d.String()); response.StatusCode != http.StatusCreated {
		t.Errorf("finish: %s: %s", response.Status, content)
	}
	if _, content := send(t, fresh(), http.MethodGet, s.url+"/v2/staging/digits/blobs/"+d.String()); digest.FromBytes(content) != d {
		t.Errorf("pulled %d bytes that are not what was pushed", len(content))
	}
	if err := s.stop(); err != nil {
		t.Error(err)
	}
}

// TestStopGivesUp does not wait for ever for who does not finish.
func TestStopGivesUp(t *testing.T) {
	t.Parallel()
	s := newServed(t, "listen: 127.0.0.1:0\nshutdown_grace: 100ms\n")
	c := dial(t, s.host())
	if _, err := io.WriteString(c, "POST /v2/staging/digits/blobs/uploads/?digest="+digest.FromString("never").String()+" HTTP/1.1\r\nHost: "+s.host()+"\r\nContent-Length: 5\r\n\r\nne"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the upload begins", func() bool {
		found, err := filepath.Glob(filepath.Join(s.dir, "incoming", "*"))
		return err == nil && len(found) == 1
	})
	err := s.stop()
	if err == nil || s.cmd.ProcessState.ExitCode() != 1 || !strings.Contains(s.stderr.String(), "did not finish in 100ms") {
		t.Errorf("serve ended with %v\n%s", err, s.stderr.String())
	}
}

// TestSlowClients gives up who does not get on: with the headers, with a body, or after
// an answer; and who sends more than anybody needs.
func TestSlowClients(t *testing.T) {
	t.Parallel()
	s := newServed(t, "listen: 127.0.0.1:0\nheader_timeout: 200ms\nbody_timeout: 200ms\nidle_timeout: 200ms\nmax_header_bytes: 4096\n")
	host := "Host: " + s.host() + "\r\n"
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
			conn := dial(t, s.host())
			if err := conn.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
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
