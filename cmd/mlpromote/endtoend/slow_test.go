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

// A crowd of slow clients may cost so much memory for each, and for what is read as a whole:
// a few large bodies at a time, with what is left of them until it is collected, however many
// send one. Of a large crowd, without that bound, the bodies alone would be gigabytes.
const (
	slowMemory = 256 << 10
	heldMemory = 512 << 20
)

// TestSlowCrowd lets many clients at once stop in the middle of headers and bodies, and
// others send without an end. The service hangs up on all of them by itself, answers others
// meanwhile, and takes no more memory than connections need. MLPROMOTE_SOAK asks for a
// larger crowd.
func TestSlowCrowd(t *testing.T) {
	t.Parallel()
	crowd, pause := 119, "500ms"
	if os.Getenv("MLPROMOTE_SOAK") != "" {
		crowd, pause = 3000, "10s"
	}
	s := programtest.Serve(t, programtest.Program(t), fmt.Sprintf("listen: 127.0.0.1:0\nheader_timeout: %[1]s\nbody_timeout: %[1]s\nidle_timeout: %[1]s\n", pause))
	host := "Host: " + s.Host() + "\r\n"
	answer, _ := programtest.Send(t, programtest.Fresh(), http.MethodPost, s.URL+"/v2/staging/slow/blobs/uploads/")
	upload := strings.TrimPrefix(answer.Header.Get("Location"), s.URL)
	manifest := "PUT /v2/staging/slow/manifests/1.0.0 HTTP/1.1\r\n" + host
	rest := "POST /api/v1/models/slow/resolve HTTP/1.1\r\n" + host + "Content-Type: application/json\r\n"
	kinds := []slowClient{
		{name: "headers", sends: "GET /v2/ HTTP/1.1\r\n" + host + "X: "},
		{name: "an upload", sends: "PATCH " + upload + " HTTP/1.1\r\n" + host + "Content-Length: 1000000\r\n\r\nx"},
		{name: "a manifest", sends: manifest + "Content-Length: 1000\r\n\r\n{"},
		{name: "a REST request", sends: rest + "Content-Length: 1000\r\n\r\n{"},
		{name: "endless headers", sends: "GET /v2/ HTTP/1.1\r\n" + host, goesOn: "X: " + strings.Repeat("x", 4000) + "\r\n"},
		{name: "an endless manifest", sends: manifest + "Transfer-Encoding: chunked\r\n\r\n", goesOn: "1000\r\n" + strings.Repeat("x", 4096) + "\r\n"},
		{name: "an endless REST request", sends: rest + "Transfer-Encoding: chunked\r\n\r\n", goesOn: "1000\r\n" + strings.Repeat(" ", 4096) + "\r\n"},
	}
	before := peakMemory(t, s)
	var slow sync.WaitGroup
	for n := range crowd {
		slow.Go(func() { kinds[n%len(kinds)].stay(t, s.Host()) })
	}
	gone := make(chan struct{})
	go func() { slow.Wait(); close(gone) }()
	client, answers := programtest.Fresh(), 0
	for open := true; open; answers++ {
		select {
		case <-gone:
			open = false
		default:
		}
		if answer, _ := programtest.Send(t, client, http.MethodGet, s.URL+"/v2/"); answer.StatusCode != http.StatusOK {
			t.Fatalf("somebody else gets %s", answer.Status)
		}
	}
	grown := peakMemory(t, s) - before
	t.Logf("%d slow clients; %d answers to others meanwhile; %d KiB of memory", crowd, answers, grown>>10)
	if limit := int64(heldMemory + crowd*slowMemory); grown > limit {
		t.Errorf("the service took %d bytes of memory more, want at most %d", grown, limit)
	}
	if err := s.Stop(); err != nil {
		t.Error(err)
	}
}

// slowClient sends something, and then nothing more, or the same over and over.
type slowClient struct{ name, sends, goesOn string }

// mostTaken is what a service may take of a client that never ends: the largest manifest,
// and what the buffers of two sockets hold.
const mostTaken = 128 << 20

// stay is there until the service hangs up.
func (c slowClient) stay(t *testing.T, address string) {
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Error(err)
		return
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(2 * time.Minute)); err != nil {
		t.Error(err)
	}
	sent, err := io.WriteString(conn, c.sends)
	for err == nil && c.goesOn != "" && sent < mostTaken {
		var n int
		n, err = io.WriteString(conn, c.goesOn)
		sent += n
	}
	if sent >= mostTaken {
		t.Errorf("%s: the service took %d bytes", c.name, sent)
	}
	if _, err := io.Copy(io.Discard, conn); os.IsTimeout(err) {
		t.Errorf("%s: the service still waits", c.name)
	}
}

// peakMemory is the most memory that the service has held, in bytes.
func peakMemory(t *testing.T, s *programtest.Service) int64 {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.Process().Pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := bytes.Cut(status, []byte("VmHWM:"))
	kib, err := strconv.ParseInt(string(bytes.Fields(rest)[0]), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return kib << 10
}
