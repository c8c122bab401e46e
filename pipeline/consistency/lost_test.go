package consistency_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/consistency"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// repeatsAlone leaves no dimension open.
func repeatsAlone(w *trying) {
	fixed := []validators.Dim{{Size: 1}, {Size: values}}
	w.o.Interface.Inputs[0].Shape, w.o.Interface.Outputs[0].Shape, w.o.Interface.Dims = fixed, fixed, nil
}

// twoBatches leaves two checks beside the repeats: batches of two, and one of three.
func twoBatches(w *trying) {
	open := []validators.Dim{{Symbol: "batch"}, {Size: values}}
	w.o.Interface.Inputs[0].Shape, w.o.Interface.Outputs[0].Shape = open, open
	w.o.Interface.Dims = map[string]validators.DimRange{"batch": {Min: 1, Opt: 1, Max: 3}}
	w.o.MaxBytes = 3 * 2 * 4 * values // of three cases and what they give
}

// twoSizes leaves two checks beside the repeats: seq=1 and seq=32.
func twoSizes(w *trying) {
	open := []validators.Dim{{Size: 1}, {Symbol: "seq"}}
	w.o.Interface.Inputs[0].Shape, w.o.Interface.Outputs[0].Shape = open, open
}

func allFail(evidence.Trial, map[string]tensor.Result, int) (evidence.Verdict, []evidence.Reason) {
	return evidence.VerdictFail, nil
}

// at does something when a verdict is asked for that many times.
func at(e *consistency.Engine, verdict int, do func()) {
	judge, asked := e.Judge, 0
	e.Judge = func(kind evidence.Trial, outputs map[string]tensor.Result, cases int) (evidence.Verdict, []evidence.Reason) {
		if asked++; asked == verdict {
			do()
		}
		return judge(kind, outputs, cases)
	}
}

// after does something when the engine has run.
func after(e *consistency.Engine, do func()) {
	run := e.Run
	e.Run = func(ctx context.Context, inputs []consistency.Input, dir string) (string, error) {
		defer do()
		return run(ctx, inputs, dir)
	}
}

// A file that is lost during the checks is an error and no verdict on the engine.
func TestLostFiles(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		narrow  func(*trying)
		judge   func(evidence.Trial, map[string]tensor.Result, int) (evidence.Verdict, []evidence.Reason)
		verdict int // when the file is lost; 0: after the run
		needed  []string
	}{
		"repeats": {repeatsAlone, judge, 0, []string{"cases/a", "cases/b", "outputs/a", "outputs/b", "run/runs/together/out/check-0-again-00000",
			"run/runs/together/out/check-0-again-00001", "run/runs/together/out/check-1-once-00000", "run/runs/together/out/check-1-once-00001",
			"run/runs/together/out/check-4-000-beyond"}},
		"batches": {twoBatches, judge, 1, []string{"cases/a", "outputs/a", "run/runs/together/out/check-2-001-batch-00000",
			"run/runs/together/out/check-4-002-beyond"}},
		"batches of a model that mixes its cases": {twoBatches, allFail, 2, []string{"cases/a", "outputs/a",
			"run/runs/together/out/check-2-001-batch-00000", "run/runs/together/out/check-4-002-beyond",
			"scratch/reference-check-2-001-batch-00000/together/out/check-2-001-batch-00000"}},
		"sizes": {twoSizes, judge, 1, []string{"run/runs/together/out/check-3-001-sizes", "run/runs/together/out/check-4-002-beyond", "scratch/inputs/check-3-001-sizes",
			"scratch/reference/together/out/check-3-001-sizes"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t, false)
			c.narrow(w)
			w.judge = c.judge
			set, engine := w.ready(t, honest)
			roots := map[string]string{"cases": w.o.Dir, "outputs": engine.Outputs, "scratch": w.o.Scratch, "run": t.TempDir()}
			want, err := set.Engine(t.Context(), engine, roots["run"])
			if err != nil {
				t.Fatal(err)
			}
			var needed []string
			for _, file := range files(t, roots) {
				engine := engine
				root, below, _ := strings.Cut(file, "/")
				roots["run"] = t.TempDir()
				path := filepath.Join(roots[root], below+".safetensors")
				lose := func() { moved(t, path, path+".lost") }
				if c.verdict == 0 {
					after(&engine, lose)
				} else {
					at(&engine, c.verdict, lose)
				}
				got, err := set.Engine(t.Context(), engine, roots["run"])
				moved(t, path+".lost", path)
				if errors.Is(err, fs.ErrNotExist) {
					needed = append(needed, file)
				} else if err != nil || !reflect.DeepEqual(got, want) {
					t.Errorf("without %s: found %+v, error %v; want the error that it is not there, or what was found before", file, got, err)
				}
			}
			if !slices.Equal(needed, c.needed) {
				t.Errorf("without these there was an error: %q, want %q", needed, c.needed)
			}
		})
	}
}

// files lists the files of tensors below folders, in order.
func files(t *testing.T, roots map[string]string) []string {
	t.Helper()
	var all []string
	for name, root := range roots {
		if err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				below, _ := filepath.Rel(root, path)
				all = append(all, name+"/"+strings.TrimSuffix(filepath.ToSlash(below), ".safetensors"))
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	slices.Sort(all)
	return all
}

func moved(t *testing.T, from, to string) {
	t.Helper()
	if err := os.Rename(from, to); err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
}

// Who ends a verification gets that error, and no verdict on the engine.
func TestCanceled(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		narrow  func(*trying)
		engine  model
		judge   func(evidence.Trial, map[string]tensor.Result, int) (evidence.Verdict, []evidence.Reason)
		verdict int
	}{
		"between repeats": {repeatsAlone, but(func(run int, y []float32, _, _ int) error { y[0] += float32(run) / 1000; return nil }), judge, 1},
		"between sizes":   {twoSizes, honest, judge, 1},
		"before the last batch is compared with the reference model's": {twoBatches, honest, allFail, 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t, false)
			c.narrow(w)
			w.judge = c.judge
			set, engine := w.ready(t, c.engine)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			at(&engine, c.verdict, cancel)
			if found, err := set.Engine(ctx, engine, t.TempDir()); !errors.Is(err, context.Canceled) {
				t.Errorf("found %+v, error %v; want that it was canceled", found, err)
			}
		})
	}
	t.Run("during a run", func(t *testing.T) {
		t.Parallel()
		for process := 1; process <= 2; process++ { // all together, then the first alone
			w := setup(t, false)
			set, engine := w.ready(t, honest)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			processes := 0
			run := func(context.Context, []consistency.Input, string) (string, error) {
				if processes++; processes%2 == process%2 {
					cancel()
				}
				return "", errors.New("killed")
			}
			engine.Run = run
			if found, err := set.Engine(ctx, engine, t.TempDir()); !errors.Is(err, context.Canceled) || processes != process {
				t.Errorf("found %+v of an engine, error %v after %d processes; want that process %d was canceled", found, err, processes, process)
			}
			processes = 0
			ctx, cancel = context.WithCancel(t.Context())
			defer cancel()
			if err := set.Reference(ctx, run); !errors.Is(err, context.Canceled) || processes != process {
				t.Errorf("reference model: error %v after %d processes; want that process %d was canceled", err, processes, process)
			}
		}
	})
}

// Checks whose files cannot be written are not made.
func TestChecksThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	made := setup(t, false)
	if _, err := consistency.New(made.o); err != nil {
		t.Fatal(err)
	}
	all := files(t, map[string]string{"": made.o.Scratch})
	if len(all) != 13 { // two for each of two repeats, loads and batches of two, one for a larger batch, each of three sizes and inputs beyond the cases
		t.Errorf("made %q, want 13 files", all)
	}
	for _, file := range all {
		for name, block := range map[string]func(path string) error{
			"a folder is there":    func(path string) error { return os.Mkdir(path, 0o700) },
			"no space on the disk": func(path string) error { return os.Symlink("/dev/full", path) },
		} {
			if _, err := os.Stat("/dev/full"); err != nil && strings.HasPrefix(name, "no space") {
				continue
			}
			w := setup(t, false)
			path := filepath.Join(w.o.Scratch, filepath.FromSlash(file)+".safetensors")
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), block(path)); err != nil {
				t.Fatal(err)
			}
			if _, err := consistency.New(w.o); err == nil {
				t.Errorf("%s, %s: no error, want one", file, name)
			}
		}
	}
}

// Cases that cannot be read are an error, whatever of them is tried.
func TestCasesThatCannotBeRead(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		narrow func(*trying)
		lost   string
	}{
		"repeats": {repeatsAlone, "b"},
		"batches, of which none can be afforded": {func(w *trying) {
			w.o.Budget = 0
			slices.Reverse(w.o.Shards)
		}, "b"},
		"sizes, of which none can be afforded": {func(w *trying) { twoSizes(w); w.o.Budget = 0 }, "a"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for how, spoil := range map[string]func(path string){
				"not there": func(path string) { moved(t, path, path+".lost") },
				"without the input": func(path string) {
					x, err := tensor.New([]float32{1}, 1)
					if err != nil {
						t.Error(err)
					}
					writeFile(t, path, map[string]tensor.Tensor{"z": x})
				},
			} {
				w := setup(t, false)
				c.narrow(w)
				spoil(filepath.Join(w.o.Dir, c.lost+".safetensors"))
				if _, err := consistency.New(w.o); err == nil {
					t.Errorf("%s: no error, want one", how)
				}
			}
		})
	}
}
