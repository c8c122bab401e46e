//go:build cgo

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/programtest"
)

// What a build leaves that was killed is removed by the next command that needs such a folder.
func TestKilledBuildLeavesNothing(t *testing.T) {
	t.Parallel()
	dir, temp := t.TempDir(), t.TempDir()
	if err := programtest.Digits(dir); err != nil {
		t.Fatal(err)
	}
	command := func(name string) *exec.Cmd {
		cmd := exec.CommandContext(t.Context(), programtest.Program(t), name)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "TMPDIR="+temp, "MLPROMOTE_CACHE="+programtest.Cache(t))
		return cmd
	}
	build := command("build")
	if err := build.Start(); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(time.Minute); len(inFolder(t, temp)) == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the build made no folder for temporary files")
		}
	}
	if err := build.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = build.Wait()
	left := inFolder(t, temp)
	if out, err := command("plan").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if now := inFolder(t, temp); len(left) == 0 || len(now) != 0 {
		t.Errorf("the build left %q, and the next command %q; want something and nothing", left, now)
	}
}

func inFolder(t *testing.T, dir string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	return found
}
