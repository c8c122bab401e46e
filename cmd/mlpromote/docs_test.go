//go:build cgo

package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/registry/postgres/pgtest"
)

// block is a fenced block of shell in a page.
type block struct {
	line int
	exit int
	text string
}

var fence = regexp.MustCompile("^```sh(?: (served|node|postgres|move))?(?: exit=([0-9]+))?$")

// shellBlocks finds the blocks that start with ```sh, with the exit code that the info
// string asks for. Those of the kind "served" want a service at $URL, those of the kind
// "node" one that knows a node type, those of the kinds "postgres" and "move" a database.
func shellBlocks(t *testing.T, page, kind string) []block {
	t.Helper()
	data, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	var blocks []block
	var open *block
	for i, line := range strings.Split(string(data), "\n") {
		m := fence.FindStringSubmatch(line)
		switch {
		case open == nil && m != nil && m[1] == kind:
			open = &block{line: i + 1}
			if m[2] != "" {
				open.exit, err = strconv.Atoi(m[2])
				if err != nil {
					t.Fatal(err)
				}
			}
		case open != nil && line == "```":
			blocks = append(blocks, *open)
			open = nil
		case open != nil:
			open.text += line + "\n"
		}
	}
	if len(blocks) == 0 {
		t.Fatalf("%s has no shell blocks", page)
	}
	return blocks
}

// runBlocks runs the blocks of a kind of a page one after the other, each in the folder that
// the first of them went to.
func runBlocks(t *testing.T, program, page, kind, dir string, more ...string) {
	t.Helper()
	where := filepath.Join(t.TempDir(), "dir")
	env := append(os.Environ(), environment(t.TempDir(), testCache(t))...)
	env = append(append(env, "PATH="+filepath.Dir(program)+":"+os.Getenv("PATH"), "PAGE_DIR="+where), more...)
	for i, b := range shellBlocks(t, page, kind) {
		script := b.text
		if i == 0 {
			script += "pwd > \"$PAGE_DIR\"\n"
		}
		cmd := exec.CommandContext(t.Context(), "sh", "-euc", script)
		cmd.Dir, cmd.Env = dir, env
		out, err := cmd.CombinedOutput()
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
		if got := cmd.ProcessState.ExitCode(); got != b.exit {
			t.Fatalf("%s:%d: exit code %d, want %d\n%s\n%s", page, b.line, got, b.exit, b.text, out)
		}
		if i == 0 {
			data, err := os.ReadFile(where)
			if err != nil {
				t.Fatal(err)
			}
			dir = string(bytes.TrimSpace(data))
		}
	}
}

// TestPages runs what the pages tell a reader to type.
func TestPages(t *testing.T) {
	t.Parallel()
	program := fastProgram(t)
	t.Run("tutorial", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		if err := copyTree(examples, filepath.Join(dir, "examples")); err != nil {
			t.Fatal(err)
		}
		runBlocks(t, program, "../../docs/tutorial.md", "", dir)
	})
	t.Run("tune", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		if err := copyTree(filepath.Join(examples, "digits"), filepath.Join(dir, "examples", "digits")); err != nil {
			t.Fatal(err)
		}
		runBlocks(t, program, "../../docs/how-to/tune.md", "", dir)
	})
	t.Run("readme", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		model, err := os.ReadFile(filepath.Join(examples, "digits", "digits.onnx"))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "model.onnx"), model, 0o600); err != nil {
			t.Fatal(err)
		}
		runBlocks(t, program, "../../README.md", "", dir)
	})
}

// TestOperate runs what operate.md says about backups: on a directory with its own
// catalog, which is served meanwhile, on one whose catalog is in PostgreSQL, and on one
// that moves there.
func TestOperate(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"", "postgres", "move"} {
		t.Run("on "+kind, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			c := &crash{t: t, program: fastProgram(t), dir: filepath.Join(root, "digits")}
			data, backup, own := filepath.Join(root, "data"), filepath.Join(root, "backup"), environment(root, testCache(t))
			restored := ""
			if kind == "postgres" {
				own = append(own, "MLPROMOTE_DATABASE="+pgtest.Shared(t).Database(t))
			}
			if kind != "" {
				restored = pgtest.Shared(t).Database(t)
			}
			c.env = append(append(os.Environ(), own...), "MLPROMOTE_DATA="+data)
			if err := errors.Join(copyTree(filepath.Join(examples, "digits"), c.dir), oneTarget(c.dir), os.Mkdir(backup, 0o700)); err != nil {
				t.Fatal(err)
			}
			c.bump()
			for _, verb := range []string{"build", "verify", "promote"} {
				c.must(verb)
			}
			proven := c.must("list")
			server := &served{program: c.program, dir: data, env: own}
			if err := server.start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(server.kill)
			runBlocks(t, c.program, "../../docs/how-to/operate.md", kind, root,
				append(own, "DATA="+data, "BACKUP="+backup, "RESTORED_DATABASE="+restored)...)
			server.kill()
			c.env = append(append(os.Environ(), own...), "MLPROMOTE_DATA="+data+"-restored")
			if restored != "" {
				c.env = append(c.env, "MLPROMOTE_DATABASE="+restored)
			}
			if got := c.must("list"); got != proven {
				t.Errorf("restored are\n%s, want\n%s", got, proven)
			}
			c.must("pull", "vision/digits", "--env", "prod", "-o", filepath.Join(root, "pulled"))
			if _, err := os.Stat(filepath.Join(data+"-restored", "keys", "local.key")); err == nil {
				t.Error("the private key was in the backup")
			}
		})
	}
}
