package node_test

import (
	"errors"
	"os/exec"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/registry/node"
)

func TestRun(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip("no sh on this system")
	}
	out, err := node.Run(t.Context(), "sh", "-c", "echo $LC_ALL")
	if err != nil || string(out) != "C\n" {
		t.Errorf("%q, %v", out, err)
	}
	if _, err = node.Run(t.Context(), "sh", "-c", "exit 9"); err == nil {
		t.Error("a program that fails: no error")
	}
	if _, err = node.Run(t.Context(), "there-is-no-such-program"); !errors.Is(err, exec.ErrNotFound) {
		t.Errorf("a program that is not there: %v, want %v", err, exec.ErrNotFound)
	}
	const most = 256 << 10
	if out, err = node.Run(t.Context(), "sh", "-c", "head -c 262144 /dev/zero"); err != nil || len(out) != most {
		t.Errorf("as much as is read: %d bytes, error %v, want %d", len(out), err, most)
	}
	if out, err = node.Run(t.Context(), "sh", "-c", "head -c 262145 /dev/zero"); err == nil {
		t.Errorf("a byte more: %d bytes, and no error", len(out))
	}
	endless := "while :; do echo " + strings.Repeat("x", 4096) + "; done"
	if out, err = node.Run(t.Context(), "sh", "-c", endless); err == nil || len(out) > 256<<10 {
		t.Errorf("a program that does not stop: %d bytes, error %v", len(out), err)
	}
}

// What describes a machine sees no secret of ours.
func TestRunEnvironment(t *testing.T) {
	for name, value := range map[string]string{"COSIGN_PASSWORD": "open sesame", "MLPROMOTE_TOKEN": "token",
		"AWS_SECRET_ACCESS_KEY": "key", "LD_LIBRARY_PATH": "/usr/local/nvidia/lib64"} {
		t.Setenv(name, value)
	}
	out, err := node.Run(t.Context(), "env")
	if err != nil {
		t.Skip(err)
	}
	for line := range strings.Lines(string(out)) {
		if name, _, _ := strings.Cut(line, "="); name != "PATH" && name != "LC_ALL" &&
			name != "LD_LIBRARY_PATH" && name != "PWD" && name != "_" && name != "SHLVL" {
			t.Errorf("it sees %s", name)
		}
	}
	if !strings.Contains(string(out), "LD_LIBRARY_PATH=/usr/local/nvidia/lib64\n") {
		t.Errorf("environment %q, want LD_LIBRARY_PATH in it", out)
	}
}
