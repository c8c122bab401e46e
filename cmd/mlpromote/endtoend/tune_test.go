//go:build cgo && linux && amd64

package endtoend

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/programtest"
	"mlpromote.dev/mlpromote/registry"
)

// Interrupted, tune shows what was measured until then.
func TestTuneInterrupted(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := programtest.Example("digits", dir); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), programtest.Program(t), "tune")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), programtest.Environment(dir, programtest.Cache(t))...)
	var stdout bytes.Buffer
	cmd.Stdout = &stdout
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	said := ""
	for lines := bufio.NewScanner(stderr); lines.Scan(); {
		said += lines.Text() + "\n"
		if strings.Contains(lines.Text(), "pass 1 of 4") {
			if err := cmd.Process.Signal(os.Interrupt); err != nil {
				t.Fatal(err)
			}
		}
	}
	_ = cmd.Wait() // the exit code is what counts
	if code := cmd.ProcessState.ExitCode(); code != registry.ExitAgain || !strings.Contains(said, "interrupted") {
		t.Errorf("exit code %d, want %d and to be told\n%s", code, registry.ExitAgain, said)
	}
	if !strings.Contains(stdout.String(), "linux-amd64-v1/int8 ") || !strings.Contains(stdout.String(), " us ") {
		t.Errorf("want what was measured:\n%s", stdout.String())
	}
}
