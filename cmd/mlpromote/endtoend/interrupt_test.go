//go:build cgo && linux && amd64

package endtoend

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/programtest"
	"mlpromote.dev/mlpromote/registry"
)

// endlessCompiler is the manifest of a compiler that works until it is stopped, and the compiler.
const (
	endlessManifest = `name: acc
licence: none, it is a test
executable: BIN/acc
version: {arguments: [--version], pattern: 'acc ([0-9.]+)'}
compile: {arguments: ["{model}", -o, "{out}/engine.bin"]}
engine: {format: acc, entry: engine.bin, outputs: [engine.bin], native_code: true, exact_runtime: true}
`
	endlessCompiler = `#!/bin/sh
[ "$1" = --version ] && { echo "acc 2.1"; exit; }
while :; do sleep 1; done
`
	endlessTarget = "  - {name: card, accelerator: {vendor: acme, arch: a1}, toolchain: acc, variants: [fp32]}\n"
)

// A step that was interrupted is not called failed.
func TestBuildInterrupted(t *testing.T) {
	t.Parallel()
	dir, bin := t.TempDir(), t.TempDir()
	if err := programtest.Example("digits", dir); err != nil {
		t.Fatal(err)
	}
	spec, err := os.ReadFile(filepath.Join(dir, "mlpromote.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for path, text := range map[string]string{
		filepath.Join(dir, "mlpromote.yaml"): strings.Replace(string(spec), "targets:\n", "targets:\n"+endlessTarget, 1),
		filepath.Join(bin, "acc"):            endlessCompiler,
		filepath.Join(bin, "acc.yaml"):       strings.Replace(endlessManifest, "BIN", bin, 1),
	} {
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), programtest.Program(t), "build", "--toolchains", bin)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), programtest.Environment(dir, programtest.Cache(t))...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	programtest.Eventually(t, "the compiler compiles", func() bool { return runs(filepath.Join(bin, "acc"), "-o") })
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // the exit code is what counts
	if code := cmd.ProcessState.ExitCode(); code != registry.ExitAgain {
		t.Errorf("exit code: got %d, want %d", code, registry.ExitAgain)
	}
	if said := stderr.String(); strings.Contains(said, "failed") || !strings.Contains(said, " s  interrupted\n") {
		t.Errorf("want steps that were interrupted, and none that failed:\n%s", said)
	}
}

// runs reports whether a process on this machine has all these arguments.
func runs(arguments ...string) bool {
	commands, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	return slices.ContainsFunc(commands, func(path string) bool {
		line, _ := os.ReadFile(path) // the process may have ended
		have := strings.Split(string(line), "\x00")
		return !slices.ContainsFunc(arguments, func(a string) bool { return !slices.Contains(have, a) })
	})
}
