//go:build cgo

package endtoend

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"

	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/programtest"
	"mlpromote.dev/mlpromote/pipeline/toolchain/toolchaintest"
	"mlpromote.dev/mlpromote/registry/postgres/pgtest"
)

// runBlocks runs the blocks of a kind of a page one after the other, as somebody who types
// them does: each in the folder where the one before ended.
func runBlocks(t *testing.T, program, page, kind, dir string, more ...string) {
	t.Helper()
	where := filepath.Join(t.TempDir(), "dir")
	env := append(os.Environ(), programtest.Environment(t.TempDir(), programtest.Cache(t))...)
	env = append(append(env, "PATH="+filepath.Dir(program)+":"+os.Getenv("PATH"), "PAGE_DIR="+where), more...)
	for _, b := range programtest.Blocks(t, page, kind) {
		if b.File != "" {
			if err := os.WriteFile(filepath.Join(dir, b.File), []byte(b.Text), 0o600); err != nil {
				t.Fatal(err)
			}
			continue
		}
		script := "trap 'pwd > \"$PAGE_DIR\"' EXIT\n" + b.Text
		cmd := exec.CommandContext(t.Context(), "sh", "-euc", script)
		cmd.Dir, cmd.Env = dir, env
		out, err := cmd.CombinedOutput()
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
		if got := cmd.ProcessState.ExitCode(); got != b.Exit {
			t.Fatalf("%s:%d: exit code %d, want %d\n%s\n%s", page, b.Line, got, b.Exit, b.Text, out)
		}
		if line := b.Missing(string(out)); line != "" {
			t.Fatalf("%s:%d: the output does not have the line %q:\n%s", page, b.Line, line, out)
		}
		data, err := os.ReadFile(where)
		if err != nil {
			t.Fatal(err)
		}
		dir = string(bytes.TrimSpace(data))
	}
}

// TestPages runs what the pages tell a reader to type.
func TestPages(t *testing.T) {
	t.Parallel()
	program := programtest.Program(t)
	t.Run("tutorial", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		if err := programtest.Example("", filepath.Join(dir, "examples")); err != nil {
			t.Fatal(err)
		}
		runBlocks(t, program, "docs/tutorial.md", "", dir)
	})
	for _, page := range []string{"tune", "limits", "differences", "upgrade"} {
		t.Run(page, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if err := programtest.Example("digits", filepath.Join(dir, "examples", "digits")); err != nil {
				t.Fatal(err)
			}
			runBlocks(t, program, "docs/how-to/"+page+".md", "", dir)
		})
	}
	t.Run("servers", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		if err := programtest.Example("digits", filepath.Join(dir, "examples", "digits")); err != nil {
			t.Fatal(err)
		}
		path := filepath.Dir(program) + ":" + filepath.Dir(programtest.Server(t)) + ":" + os.Getenv("PATH")
		runBlocks(t, program, "docs/how-to/servers.md", "", dir, "PATH="+path)
	})
	t.Run("keys", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		if err := programtest.Example("digits", filepath.Join(dir, "examples", "digits")); err != nil {
			t.Fatal(err)
		}
		runBlocks(t, program, "docs/how-to/keys.md", "", dir, "COSIGN_PASSWORD=a secret")
	})
	t.Run("reports", func(t *testing.T) {
		t.Parallel()
		runWithPython(t, program, "docs/how-to/reports.md")
	})
	for _, page := range []string{"cases", "pipelines"} {
		t.Run(page, func(t *testing.T) {
			t.Parallel()
			runWithPython(t, program, "docs/how-to/"+page+".md")
		})
	}
	for page, framework := range tutorials {
		t.Run(page, func(t *testing.T) {
			t.Parallel()
			runTutorial(t, program, page, framework)
		})
	}
	t.Run("builds", func(t *testing.T) {
		t.Parallel()
		dir, cache := t.TempDir(), t.TempDir()
		if err := programtest.Example("digits", filepath.Join(dir, "examples", "digits")); err != nil {
			t.Fatal(err)
		}
		// The page prunes the cache, which other tests use.
		if err := os.Symlink(filepath.Join(programtest.Cache(t), "toolchains"), filepath.Join(cache, "toolchains")); err != nil {
			t.Fatal(err)
		}
		shared := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
		t.Cleanup(shared.Close)
		runBlocks(t, program, "docs/how-to/builds.md", "", dir, "MLPROMOTE_CACHE="+cache, "REGISTRY="+shared.Listener.Addr().String())
		runBlocks(t, program, "docs/how-to/compilers.md", "", filepath.Join(dir, "examples", "digits"), "MLPROMOTE_CACHE="+cache)
	})
	for page, releases := range map[string]int{"recall": 2, "hand-over": 1, "air-gap": 1} {
		t.Run(page, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			own := append(programtest.Environment(root, programtest.Cache(t)), "MLPROMOTE_DATA="+filepath.Join(root, "data"))
			c := programtest.NewJob(t, program, filepath.Join(root, "digits"), own...)
			for range releases {
				c.Release()
			}
			runBlocks(t, program, "docs/how-to/"+page+".md", "", c.Dir, own...)
		})
	}
	t.Run("cluster-nodes", func(t *testing.T) {
		t.Parallel()
		root := t.TempDir()
		own := append(programtest.Environment(root, programtest.Cache(t)), "MLPROMOTE_DATA="+filepath.Join(root, "data"))
		c := programtest.NewJob(t, program, filepath.Join(root, "digits"), own...)
		c.Release()
		nodes, err := os.ReadFile(filepath.Join("testdata", "nodes.json"))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(c.Dir, "nodes.json"), nodes, 0o600); err != nil {
			t.Fatal(err)
		}
		runBlocks(t, program, "docs/how-to/cluster-nodes.md", "", c.Dir, own...)
	})
	t.Run("readme", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		model, err := os.ReadFile(programtest.Root("examples", "digits", "digits.onnx"))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "model.onnx"), model, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "inputs.csv"), rowsOfPixels(100), 0o600); err != nil {
			t.Fatal(err)
		}
		runBlocks(t, program, "README.md", "", dir)
	})
}

// rowsOfPixels is a table of images of digits: 64 columns of numbers from 0 to 16.
func rowsOfPixels(rows int) []byte {
	noise := rand.New(rand.NewPCG(1, 1))
	var b bytes.Buffer
	for column := range 64 {
		fmt.Fprintf(&b, "pixel%d,", column)
	}
	b.Truncate(b.Len() - 1)
	for range rows {
		b.WriteByte('\n')
		for range 64 {
			fmt.Fprintf(&b, "%d,", noise.IntN(17))
		}
		b.Truncate(b.Len() - 1)
	}
	return b.Bytes()
}

// TestOperate runs the commands of operate.md and backup.md: on a directory with its own
// catalog, which is served meanwhile, on one whose catalog is in PostgreSQL, and on one
// that moves there.
func TestOperate(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"", "postgres", "move"} {
		t.Run("on "+kind, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			data, backup, own := filepath.Join(root, "data"), filepath.Join(root, "backup"), programtest.Environment(root, programtest.Cache(t))
			original, restored := "", ""
			if kind == "postgres" {
				original = pgtest.Shared(t).Database(t)
				own = append(own, "MLPROMOTE_DATABASE="+original)
			}
			if kind != "" {
				restored = pgtest.Shared(t).Database(t)
			}
			c := programtest.NewJob(t, programtest.Program(t), filepath.Join(root, "digits"), append(own, "MLPROMOTE_DATA="+data)...)
			if err := os.Mkdir(backup, 0o700); err != nil {
				t.Fatal(err)
			}
			c.Release()
			proven := c.Must("list")
			if original != "" {
				begun := pgtest.Exec(t.Context(), original, `INSERT INTO sessions VALUES ('s', sha256('s'), 'token:ana', 'ana', '', '', now(), now() + interval '1 hour')`)
				if begun != nil {
					t.Fatal(begun)
				}
			}
			server := &programtest.Service{Program: c.Program, Dir: data, Env: own}
			server.MustStart(t)
			own = append(own, "DATA="+data, "BACKUP="+backup, "RESTORED_DATABASE="+restored)
			if kind == "" {
				runBlocks(t, c.Program, "docs/how-to/operate.md", kind, root, own...)
			}
			runBlocks(t, c.Program, "docs/how-to/backup.md", kind, root, own...)
			server.Kill()
			c.Env = append(append(os.Environ(), own...), "MLPROMOTE_DATA="+data+"-restored")
			if restored != "" {
				c.Env = append(c.Env, "MLPROMOTE_DATABASE="+restored)
			}
			if got := c.Must("list"); got != proven {
				t.Errorf("restored are\n%s, want\n%s", got, proven)
			}
			if restored != "" {
				var sessions int
				if err := pgtest.Row(t.Context(), restored, `SELECT count(*) FROM sessions`, &sessions); err != nil || sessions != 0 {
					t.Errorf("restored are %d sessions, error %v, want none", sessions, err)
				}
			}
			c.Must("pull", "vision/digits", "--env", "prod", "-o", filepath.Join(root, "pulled"))
			if _, err := os.Stat(filepath.Join(data+"-restored", "keys", "local.key")); err == nil {
				t.Error("the private key was in the backup")
			}
		})
	}
}

// runWithPython runs the commands of a page beside the digits example, with the Python of ONNX Runtime first on PATH.
func runWithPython(t *testing.T, program, page string) {
	t.Helper()
	dir := t.TempDir()
	if err := programtest.Example("digits", filepath.Join(dir, "examples", "digits")); err != nil {
		t.Fatal(err)
	}
	found, err := toolchaintest.Installer(t, "onnxruntime").Find("onnxruntime")
	if err != nil {
		t.Fatal(err)
	}
	path := "PATH=" + filepath.Dir(found.Interpreter()) + ":" + filepath.Dir(program) + ":" + os.Getenv("PATH")
	runBlocks(t, program, page, "", dir, path)
}
