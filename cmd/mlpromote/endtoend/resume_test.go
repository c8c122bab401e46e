//go:build cgo && linux

package endtoend

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// TestVerifyResumes kills a verification part way: the next one goes on with the cases that
// it had not run, and with those alone.
func TestVerifyResumes(t *testing.T) {
	t.Parallel()
	l := newLarge(t, 32, "cases: {generate: 300, seed: 1}\ntargets: [linux/amd64/v1]\n")
	if out, err := l.verb(t, "build"); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	l.killAfterFirstChunk(t)
	out, err := l.verb(t, "verify", "--output", "json")
	if err != nil {
		t.Fatalf("verify: %v\n%s", err, out)
	}
	for _, want := range []string{
		"resumed: 16 of 300 cases were run before", `"earlier": 16,`, `"ran": 300,`, `"verdict": "pass"`, `"maxAbs": 0,`,
	} {
		if !strings.Contains(out, want) {
			t.Errorf("the verification that goes on does not say %s:\n%s", want, out)
		}
	}
	// Its outputs are as old as the verification that broke off, and so are its claims.
	times := regexp.MustCompile(`"startedOn": "([^"]+)"`).FindAllStringSubmatch(out, -1)
	if len(times) != 2 || times[0][1] >= times[1][1] {
		t.Errorf("parity and performance began at %v, want parity with the verification that was killed", times)
	}
	if left, err := filepath.Glob(l.path("cache/verify/*")); err != nil || len(left) > 0 {
		t.Errorf("after it has come to its end it leaves %v (%v)", left, err)
	}
}

// verb runs a verb and gives all that it prints.
func (l *large) verb(t *testing.T, args ...string) (string, error) {
	t.Helper()
	cmd, out := l.command(t.Context(), args)
	err := cmd.Run()
	return out.String(), err
}

// killAfterFirstChunk ends a verification as soon as something of it is remembered.
func (l *large) killAfterFirstChunk(t *testing.T) {
	t.Helper()
	cmd, out := l.command(t.Context(), []string{"verify"})
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for {
		steps, err := filepath.Glob(l.path("cache/verify/*/steps/*/*.json"))
		if err != nil {
			t.Fatal(err)
		}
		if len(steps) > 0 {
			break
		}
		select {
		case <-ticker.C:
		case err := <-ended:
			t.Fatalf("verify ended before it had remembered anything: %v\n%s", err, out)
		}
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err == nil {
		t.Fatalf("verify had ended before it was killed:\n%s", out)
	}
}
