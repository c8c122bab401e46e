package pgtest_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"mlpromote.dev/mlpromote/registry/postgres/pgtest"
)

// victim makes this test binary one that starts a server and waits to be killed.
const victim = "PGTEST_VICTIM"

// Nothing is left of a server whose test was killed.
func TestServerGoesWithItsProcess(t *testing.T) {
	t.Parallel()
	if os.Getenv(victim) != "" {
		server := pgtest.New(t, "fsync=off")
		fmt.Fprintln(os.Stdout, "serving", server.Dir())
		select {}
	}
	cmd := exec.Command(os.Args[0], "-test.run", "^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), victim+"=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Wait() }()
	var dir string
	said := ""
	for lines := bufio.NewScanner(out); dir == "" && lines.Scan(); said += lines.Text() + "\n" {
		dir, _ = strings.CutPrefix(lines.Text(), "serving ")
		if dir == lines.Text() {
			dir = ""
		}
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(said, "is not here") {
		t.Skip(said)
	}
	if dir == "" {
		t.Fatalf("no server came up: %s", said)
	}
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if _, err := os.Stat(dir); os.IsNotExist(err) {
			return // the guard removes it when the server is gone
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s is still there", dir)
		}
	}
}

// A server that was stopped comes back with what it held, at the same address.
func TestStopAndStart(t *testing.T) {
	t.Parallel()
	server := pgtest.New(t, "fsync=off")
	before := server.URL("kept")
	if err := server.Exec(t.Context(), "CREATE DATABASE kept"); err != nil {
		t.Fatal(err)
	}
	for _, mode := range []string{"fast", "immediate"} {
		server.Stop(t, mode)
		if err := server.Exec(t.Context(), "SELECT 1"); err == nil {
			t.Errorf("a server that was stopped (%s) answers", mode)
		}
		server.Start(t)
		if err := server.Exec(t.Context(), "ALTER DATABASE kept RENAME TO kept"); err == nil || !strings.Contains(err.Error(), "already exists") {
			t.Errorf("after %s: %v, want the database of before", mode, err)
		}
	}
	if server.URL("kept") != before {
		t.Errorf("the server moved from %s to %s", before, server.URL("kept"))
	}
}
