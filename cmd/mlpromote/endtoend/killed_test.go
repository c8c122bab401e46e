//go:build cgo && linux

package endtoend

import (
	"bufio"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/programtest"
	"mlpromote.dev/mlpromote/registry/registrytest"
)

// victimOf makes this test binary one that starts servers of the program that it names, and
// waits to be killed.
const victimOf = "ENDTOEND_VICTIM_OF"

// Services and object stores do not outlive a test that was killed, or that took too long.
func TestServersGoWithTheirTest(t *testing.T) {
	t.Parallel()
	if program := os.Getenv(victimOf); program != "" {
		fmt.Fprintln(os.Stdout, "serving", registrytest.StartS3Server(t).Endpoint)
		service := programtest.NewService(t, program, t.TempDir())
		service.MustStart(t)
		fmt.Fprintln(os.Stdout, "serving", service.URL)
		select {}
	}
	if os.Getenv("MLPROMOTE_S3SERVER") == "" {
		t.Skip("MLPROMOTE_S3SERVER names no program: make test builds one")
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), victimOf+"="+programtest.Program(t), "TMPDIR="+t.TempDir())
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var servers []string
	said := ""
	for lines := bufio.NewScanner(out); len(servers) < 2 && lines.Scan(); said += lines.Text() + "\n" {
		if server, ok := strings.CutPrefix(lines.Text(), "serving "); ok {
			servers = append(servers, server)
		}
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	if len(servers) < 2 {
		t.Fatalf("got the servers %v, want an object store and a service:\n%s", servers, said)
	}
	for _, server := range servers {
		u, err := url.Parse(server)
		if err != nil {
			t.Fatal(err)
		}
		programtest.Eventually(t, server+" is gone", func() bool {
			connection, err := new(net.Dialer).DialContext(t.Context(), "tcp", u.Host)
			if err == nil {
				_ = connection.Close()
			}
			return err != nil
		})
	}
}
