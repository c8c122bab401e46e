//go:build cgo && linux

package endtoend

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/programtest"
)

// Each slow client may cost slowMemory. All together may cost heldMemory more, for the few large
// bodies that are read at a time and what the garbage collector has not freed of them. Without
// that bound the bodies of a large crowd would take gigabytes.
const (
	slowMemory = 256 << 10
	heldMemory = 512 << 20
)

// TestSlowCrowd opens many connections that stop in the middle of headers and bodies, or send
// without an end. MLPROMOTE_SOAK asks for a larger crowd.
func TestSlowCrowd(t *testing.T) {
	t.Parallel()
	crowd := 119
	if os.Getenv("MLPROMOTE_SOAK") != "" {
		crowd = 3000
	}
	t.Run("the service hangs up", func(t *testing.T) {
		t.Parallel()
		// On a busy machine these timeouts can hit any request, so that here only the crowd counts.
		s := slowService(t, "500ms")
		kinds, before := slowKinds(t, s), peakMemory(t, s)
		var slow sync.WaitGroup
		for n := range crowd {
			slow.Go(func() {
				if conn := kinds[n%len(kinds)].begin(t, s.Host()); conn != nil {
					kinds[n%len(kinds)].awaitEnd(t, conn)
				}
			})
		}
		slow.Wait()
		wantMemory(t, s, before, crowd)
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	t.Run("others are answered", func(t *testing.T) {
		t.Parallel()
		// Nobody is hung up on for being slow, so that the whole crowd is there for every answer.
		s := slowService(t, "1h")
		kinds, before := slowKinds(t, s), peakMemory(t, s)
		var begun sync.WaitGroup
		for n := range crowd {
			begun.Go(func() {
				if conn := kinds[n%len(kinds)].begin(t, s.Host()); conn != nil {
					t.Cleanup(func() { _ = conn.Close() })
				}
			})
		}
		begun.Wait()
		client := programtest.Fresh()
		client.Timeout = slowPatience
		for range 100 {
			if answer, _ := programtest.Send(t, client, http.MethodGet, s.URL+"/v2/"); answer.StatusCode != http.StatusOK {
				t.Fatalf("GET /v2/ beside %d slow clients: got %s, want 200", crowd, answer.Status)
			}
		}
		wantMemory(t, s, before, crowd)
	})
}

// slowService is a service with one timeout for headers, bodies and idle connections.
func slowService(t *testing.T, timeout string) *programtest.Service {
	t.Helper()
	return programtest.Serve(t, programtest.Program(t), fmt.Sprintf("listen: 127.0.0.1:0\nheader_timeout: %[1]s\nbody_timeout: %[1]s\nidle_timeout: %[1]s\n", timeout))
}

// slowKinds are the ways to be slow.
func slowKinds(t *testing.T, s *programtest.Service) []slowClient {
	t.Helper()
	host := "Host: " + s.Host() + "\r\n"
	upload := "PATCH " + beginUpload(t, s) + " HTTP/1.1\r\n" + host
	manifest := "PUT /v2/staging/slow/manifests/1.0.0 HTTP/1.1\r\n" + host
	rest := "POST /api/v1/models/slow/resolve HTTP/1.1\r\n" + host + "Content-Type: application/json\r\n"
	return []slowClient{
		{name: "headers", sends: "GET /v2/ HTTP/1.1\r\n" + host + "X: "},
		{name: "an upload", sends: upload + "Content-Length: 1000000\r\n\r\nx"},
		{name: "a manifest", sends: manifest + "Content-Length: 1000\r\n\r\n{"},
		{name: "a REST request", sends: rest + "Content-Length: 1000\r\n\r\n{"},
		{name: "endless headers", sends: "GET /v2/ HTTP/1.1\r\n" + host, goesOn: "X: " + strings.Repeat("x", 4000) + "\r\n"},
		{name: "an endless manifest", sends: manifest + "Transfer-Encoding: chunked\r\n\r\n", goesOn: "1000\r\n" + strings.Repeat("x", 4096) + "\r\n"},
		{name: "an endless REST request", sends: rest + "Transfer-Encoding: chunked\r\n\r\n", goesOn: "1000\r\n" + strings.Repeat(" ", 4096) + "\r\n"},
	}
}

// beginUpload gives the path of a new upload. It tries again where the service hangs up.
func beginUpload(t *testing.T, s *programtest.Service) (path string) {
	t.Helper()
	programtest.Eventually(t, "an upload begins", func() bool {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+"/v2/staging/slow/blobs/uploads/", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := programtest.Fresh().Do(request)
		if err != nil {
			return false
		}
		path = strings.TrimPrefix(answer.Header.Get("Location"), s.URL)
		return answer.Body.Close() == nil && answer.StatusCode == http.StatusAccepted
	})
	return path
}

// wantMemory checks what a crowd has cost at most.
func wantMemory(t *testing.T, s *programtest.Service, before int64, crowd int) {
	t.Helper()
	grown, limit := peakMemory(t, s)-before, int64(heldMemory+crowd*slowMemory)
	t.Logf("%d slow clients cost %d KiB of memory", crowd, grown>>10)
	if grown > limit {
		t.Errorf("memory that %d slow clients cost: got %d bytes, want at most %d", crowd, grown, limit)
	}
}

// slowPatience is how long this test waits for the service, on a busy machine too.
const slowPatience = 2 * time.Minute

// slowClient sends something, and then nothing more, or the same over and over.
type slowClient struct{ name, sends, goesOn string }

// mostTaken is what a service may take of a client that never ends: the largest manifest,
// and what the buffers of two sockets hold.
const mostTaken = 128 << 20

// begin connects and sends. A client that goes on stops when the service has hung up.
func (c slowClient) begin(t *testing.T, address string) net.Conn {
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Errorf("%s: %v", c.name, err)
		return nil
	}
	if err := conn.SetDeadline(time.Now().Add(slowPatience)); err != nil {
		t.Error(err)
	}
	sent, err := io.WriteString(conn, c.sends)
	for err == nil && c.goesOn != "" && sent < mostTaken {
		var n int
		n, err = io.WriteString(conn, c.goesOn)
		sent += n
	}
	if sent >= mostTaken || os.IsTimeout(err) {
		t.Errorf("%s: the service took %d bytes and did not hang up", c.name, sent)
	}
	return conn
}

// awaitEnd returns when the service has hung up.
func (c slowClient) awaitEnd(t *testing.T, conn net.Conn) {
	defer conn.Close()
	if _, err := io.Copy(io.Discard, conn); os.IsTimeout(err) {
		t.Errorf("%s: the service still waits", c.name)
	}
}

// peakMemory is the most memory that the service has held, in bytes.
func peakMemory(t *testing.T, s *programtest.Service) int64 {
	t.Helper()
	return memoryFigure(t, s, "VmHWM:")
}

// memoryFigure is a figure of /proc/PID/status, in bytes.
func memoryFigure(t *testing.T, s *programtest.Service, figure string) int64 {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.Process().Pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := bytes.Cut(status, []byte(figure))
	kib, err := strconv.ParseInt(string(bytes.Fields(rest)[0]), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return kib << 10
}
