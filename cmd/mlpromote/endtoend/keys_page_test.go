//go:build cgo

package endtoend

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/programtest"
)

// TestKeysPageTenCommands goes from a clone without any state to the first promotion by the commands of the page, of which there are
// at most ten. What `make` builds is there already: a program stands for it.
func TestKeysPageTenCommands(t *testing.T) {
	t.Parallel()
	const page = "docs/how-to/keys.md"
	blocks := programtest.Blocks(t, page, "ten")
	if len(blocks) != 1 {
		t.Fatalf("the page has %d blocks of the kind, want one", len(blocks))
	}
	commands := strings.Split(strings.TrimSpace(blocks[0].Text), "\n")
	if len(commands) > 10 || commands[0] != "make" || strings.ContainsAny(blocks[0].Text, ";&|\\") {
		t.Errorf("the page has %d commands, want at most ten, one in each line:\n%s", len(commands), blocks[0].Text)
	}
	clone, tools := t.TempDir(), t.TempDir()
	if err := errors.Join(programtest.Example("digits", filepath.Join(clone, "examples", "digits")), os.Mkdir(filepath.Join(clone, "bin"), 0o755),
		os.Symlink(programtest.Program(t), filepath.Join(clone, "bin", "mlpromote")),
		os.WriteFile(filepath.Join(tools, "make"), []byte("#!/bin/sh\ntest -x bin/mlpromote\n"), 0o700)); err != nil {
		t.Fatal(err)
	}
	runBlocks(t, programtest.Program(t), page, "ten", clone, "PATH="+tools+":"+os.Getenv("PATH"))
	env := append(os.Environ(), programtest.Environment(clone, programtest.Cache(t))...)
	j := &programtest.Job{T: t, Program: programtest.Program(t), Dir: clone, Env: env}
	if got := j.Must("trust", "prod/vision/digits"); !strings.Contains(got, "builder") && !strings.Contains(got, "keys/builder.pub") {
		t.Errorf("prod has a release that is signed so:\n%s", got)
	}
	if _, err := os.Stat(filepath.Join(clone, ".mlpromote", "keys", "local.key")); err == nil {
		t.Error("a key for all roles was made beside those of the page")
	}
}
