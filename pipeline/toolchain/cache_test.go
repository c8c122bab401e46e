package toolchain_test

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
)

// echo is a driver that leaves its options as files, and counts its jobs.
type echo struct {
	identity toolchain.Identity
	jobs     *atomic.Int64
	fail     error
}

func newEcho() echo {
	return echo{toolchain.Identity{Name: "echo", Version: "1.0", Code: digest.FromString("code")}, new(atomic.Int64), nil}
}

func (e echo) Identity(context.Context) (toolchain.Identity, error) { return e.identity, nil }

func (e echo) Do(_ context.Context, job toolchain.Job, outDir string) (toolchain.Outcome, error) {
	e.jobs.Add(1)
	if e.fail != nil {
		return toolchain.Outcome{}, e.fail
	}
	for name, text := range job.Options {
		path := filepath.Join(outDir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			return toolchain.Outcome{}, err
		}
		if err := os.WriteFile(path, []byte(text.(string)), 0o666); err != nil {
			return toolchain.Outcome{}, err
		}
	}
	files, err := toolchain.Collect(outDir)
	return toolchain.Outcome{Files: files, Result: json.RawMessage(`{"n":1}`), Elapsed: 42}, err
}

// echoJob leaves two files.
func echoJob() toolchain.Job {
	return toolchain.Job{
		Verb:    toolchain.VerbCompile,
		Inputs:  []toolchain.Input{{Role: "model", Name: "m.onnx", Path: "somewhere", Digest: digest.FromString("m"), Size: 1}},
		Options: map[string]any{"model.onnx": "weights", "deep/table.json": "{}"},
	}
}

// content reads the files of an outcome and checks that they are what it says.
func content(t *testing.T, o toolchain.Outcome) map[string]string {
	t.Helper()
	found := make(map[string]string)
	for _, f := range o.Files {
		text, err := os.ReadFile(f.Path)
		if err != nil {
			t.Fatal(err)
		}
		if digest.FromBytes(text) != f.Digest || int64(len(text)) != f.Size {
			t.Errorf("%s is not what the outcome says", f.Name)
		}
		found[f.Name] = string(text)
	}
	return found
}

func TestCacheRemembers(t *testing.T) {
	t.Parallel()
	driver := newEcho()
	store := t.TempDir()
	var first toolchain.Outcome
	for i := range 3 {
		cached := toolchain.Cache(driver, toolchain.NewStore(store)) // as another process would
		outcome, err := cached.Do(t.Context(), echoJob(), filepath.Join(t.TempDir(), "out"))
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			first = outcome
		}
		if got := content(t, outcome); !maps.Equal(got, map[string]string{"model.onnx": "weights", "deep/table.json": "{}"}) {
			t.Errorf("time %d: files %v", i, got)
		}
		if outcome.Cached != (i > 0) || outcome.Key != first.Key || string(outcome.Result) != `{"n":1}` || outcome.Elapsed != 42 {
			t.Errorf("time %d: outcome %+v", i, outcome)
		}
	}
	if n := driver.jobs.Load(); n != 1 {
		t.Errorf("the job was done %d times, want once", n)
	}
}

func TestCacheForgetsFailures(t *testing.T) {
	t.Parallel()
	driver := newEcho()
	driver.fail = errors.New("out of luck")
	cached := toolchain.Cache(driver, toolchain.NewStore(t.TempDir()))
	for range 2 {
		if _, err := cached.Do(t.Context(), echoJob(), t.TempDir()); !errors.Is(err, driver.fail) {
			t.Errorf("error %v, want that of the driver", err)
		}
	}
	if n := driver.jobs.Load(); n != 2 {
		t.Errorf("the job was tried %d times, want twice", n)
	}
}

// Whatever happens to a file of the store, the next build gets the right bytes, by
// doing the step again, and the one after that finds them.
func TestCacheRepairsDamage(t *testing.T) {
	t.Parallel()
	damages := map[string]func(path string) error{
		"removed":  os.Remove,
		"cut":      func(p string) error { return os.Truncate(p, 1) },
		"emptied":  func(p string) error { return os.Truncate(p, 0) },
		"replaced": func(p string) error { return os.WriteFile(p, []byte(`{"step":{},"sum":""}`), 0o666) },
		"flipped": func(p string) error {
			text, err := os.ReadFile(p)
			if err != nil {
				return err
			}
			text[len(text)/2] ^= 1
			return os.WriteFile(p, text, 0o666)
		},
	}
	for name, damage := range damages {
		for n := range 3 { // two objects and a record
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				driver, dir := newEcho(), t.TempDir()
				cached := toolchain.Cache(driver, toolchain.NewStore(dir))
				do := func() toolchain.Outcome {
					outcome, err := cached.Do(t.Context(), echoJob(), filepath.Join(t.TempDir(), "out"))
					if err != nil {
						t.Fatal(err)
					}
					if got := content(t, outcome); got["model.onnx"] != "weights" || got["deep/table.json"] != "{}" {
						t.Errorf("files %v", got)
					}
					return outcome
				}
				do()
				files := held(t, dir)
				if err := damage(files[n].Path); err != nil {
					t.Fatal(err)
				}
				if do().Cached {
					t.Errorf("damaged %s was used", files[n].Name)
				}
				if !do().Cached {
					t.Errorf("damaged %s was not repaired", files[n].Name)
				}
			})
		}
	}
}

// Many at once, on one store, do not see each other's half-written files.
func TestCacheConcurrently(t *testing.T) {
	t.Parallel()
	driver, dir := newEcho(), t.TempDir()
	var group sync.WaitGroup
	for range 16 {
		out := filepath.Join(t.TempDir(), "out")
		group.Go(func() {
			outcome, err := toolchain.Cache(driver, toolchain.NewStore(dir)).Do(t.Context(), echoJob(), out)
			if err != nil {
				t.Error(err)
			} else if got := content(t, outcome); got["model.onnx"] != "weights" {
				t.Errorf("files %v", got)
			}
		})
	}
	group.Wait()
	held(t, dir)
	if n := driver.jobs.Load(); n != 1 {
		t.Errorf("the step was done %d times, want once", n)
	}
}

// held gives the two objects and the record that a store of one step has.
func held(t *testing.T, dir string) []toolchain.OutputFile {
	t.Helper()
	files, err := toolchain.Collect(dir)
	files = slices.DeleteFunc(files, func(f toolchain.OutputFile) bool {
		return f.Name == "lock" || strings.HasPrefix(f.Name, "locks/")
	})
	if err != nil || len(files) != 3 {
		t.Fatalf("the store has %v (%v), want two objects and a record", files, err)
	}
	return files
}

// An output directory that already holds one of the files is left as it is.
func TestLoadDoesNotOverwrite(t *testing.T) {
	t.Parallel()
	store := toolchain.NewStore(t.TempDir())
	outcome, err := toolchain.Cache(newEcho(), store).Do(t.Context(), echoJob(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	out := t.TempDir()
	mine := filepath.Join(out, "model.onnx")
	if err := os.WriteFile(mine, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Load(t.Context(), outcome.Key, out); !errors.Is(err, os.ErrExist) {
		t.Errorf("error %v, want that the file exists", err)
	}
	if text, err := os.ReadFile(mine); err != nil || string(text) != "mine" {
		t.Errorf("the file is now %q (%v)", text, err)
	}
	if _, err := store.Load(t.Context(), outcome.Key, t.TempDir()); err != nil {
		t.Errorf("and the step is gone: %v", err)
	}
}

// FuzzLoad: no record makes Load panic, or write outside the output directory.
func FuzzLoad(f *testing.F) {
	key := digest.FromString("key")
	f.Add([]byte(`{"step":{"key":"` + key.String() + `","files":[{"name":"../escaped","digest":"` + key.String() + `"}]},"sum":""}`))
	f.Add([]byte(`null`))
	f.Fuzz(func(t *testing.T, text []byte) {
		dir := t.TempDir()
		store, out := filepath.Join(dir, "store"), filepath.Join(dir, "a", "out")
		path := filepath.Join(store, "steps", key.Encoded()[:2], key.Encoded()+".json")
		// The sum is made right, or nothing behind it would ever be reached.
		var step json.RawMessage
		if json.Unmarshal(text, &step) == nil {
			text, _ = json.Marshal(map[string]any{"step": step, "sum": digest.FromBytes(compact(t, step))})
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, text, 0o666); err != nil {
			t.Fatal(err)
		}
		outcome, err := toolchain.NewStore(store).Load(t.Context(), key, out)
		if err == nil && len(outcome.Files) > 0 {
			t.Errorf("files out of nothing: %v", outcome.Files)
		}
		if err != nil && !registry.HasCode(err, registry.CodeNotFound) {
			t.Errorf("error %v, want CodeNotFound", err)
		}
		entries, err := os.ReadDir(dir)
		if err != nil || slices.ContainsFunc(entries, func(e os.DirEntry) bool { return e.Name() != "store" && e.Name() != "a" }) {
			t.Errorf("left behind: %v (%v)", entries, err)
		}
	})
}

func compact(t *testing.T, text json.RawMessage) []byte {
	t.Helper()
	out, err := json.Marshal(text)
	if err != nil {
		t.Fatal(err)
	}
	return out
}
