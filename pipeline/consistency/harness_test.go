package consistency_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"mlpromote.dev/mlpromote/pipeline/consistency"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/parity"
	"mlpromote.dev/mlpromote/validators/tensor"
	"mlpromote.dev/mlpromote/validators/tensor/tensorfile"
)

// model computes y from x, both of the same shape [batch, seq]; run counts its calls within a
// process from 0.
type model func(run int, x []float32, batch, seq int) ([]float32, error)

// honest is the reference model of these tests.
func honest(_ int, x []float32, _, _ int) ([]float32, error) {
	y := make([]float32, len(x))
	for i, v := range x {
		y[i] = 2 * v
	}
	return y, nil
}

// but changes what the honest model computes.
func but(change func(run int, y []float32, batch, seq int) error) model {
	return func(run int, x []float32, batch, seq int) ([]float32, error) {
		y, _ := honest(run, x, batch, seq)
		return y, change(run, y, batch, seq)
	}
}

// runner runs a model as a driver does: inputs in the order of their names, case by case. A tensor
// of rank 2 has batches of one, one of rank 3 has a case dimension.
func (m model) runner(t *testing.T, processes *int) consistency.Runner {
	return func(_ context.Context, inputs []consistency.Input, dir string) (string, error) {
		*processes++
		slices.SortFunc(inputs, func(a, b consistency.Input) int { return strings.Compare(a.Name, b.Name) })
		run := 0
		for _, in := range inputs {
			if err := m.shard(t, in.Path, filepath.Join(dir, "out", in.Name), &run); err != nil {
				return "", fmt.Errorf("%s: %w", in.Name, err)
			}
		}
		return filepath.Join(dir, "out"), nil
	}
}

func (m model) shard(t *testing.T, from, to string, run *int) error {
	read, err := tensorfile.ReadFile(from, tensorfile.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	var outputs []tensor.Tensor
	x := read["x"]
	for i := range x.Shape[0] {
		one, err := x.Slice(i)
		if err != nil {
			t.Fatal(err)
		}
		shape := one.Shape
		if len(shape) == 1 {
			shape = append([]int64{1}, shape...)
		}
		values, err := tensor.Values[float32](one)
		if err != nil {
			t.Fatal(err)
		}
		y, err := m(*run, values, int(shape[0]), int(shape[1]))
		if err != nil {
			return err
		}
		*run++
		switch {
		case len(y) == 1 && len(values) > 1:
			one.Shape = nil
		case len(y) != len(values):
			one.Shape = []int64{int64(len(y)) / shape[1], shape[1]}
		}
		made, err := tensor.New(y, one.Shape...)
		if err != nil {
			t.Fatal(err)
		}
		outputs = append(outputs, made)
	}
	y, err := tensor.Stack(outputs...)
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, to, map[string]tensor.Tensor{"y": y})
	return nil
}

func writeFile(t *testing.T, path string, tensors map[string]tensor.Tensor) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := tensorfile.Write(f, tensors, nil); err != nil {
		t.Fatal(err)
	}
}

func openDims() validators.Interface {
	open := []validators.Dim{{Symbol: "batch"}, {Symbol: "seq"}}
	return validators.Interface{V: validators.InterfaceVersion,
		Inputs:  []validators.TensorInfo{{Name: "x", DType: tensor.Float32, Shape: open}},
		Outputs: []validators.TensorInfo{{Name: "y", DType: tensor.Float32, Shape: open}},
		Dims:    map[string]validators.DimRange{"batch": {Min: 1, Opt: 1, Max: 16}, "seq": {Min: 1, Opt: 4, Max: 32}}}
}

// trying is a set of cases and what is tried with them.
type trying struct {
	o         consistency.Options
	reference model
	where     string  // the input that is a mask
	processes int     // of the engine
	loads     []model // what each load of the engine computes; nil: it is not loaded again
	judge     func(evidence.Trial, map[string]tensor.Result, int) (evidence.Verdict, []evidence.Reason)
	exact     bool              // two runs must not differ
	open      []evidence.Reason // why the engine was undecided the last time
}

// values is the sequence length of the cases.
const values = 4

// setup writes two shards of cases of sequence length 4: 10 and 3. Stacked gives each case a batch
// dimension of its own.
func setup(t *testing.T, stacked bool) *trying {
	t.Helper()
	dir := t.TempDir()
	shards := []artifact.Shard{{File: "a.safetensors", First: 0, Count: 10}, {File: "b.safetensors", First: 10, Count: 3}}
	for _, s := range shards {
		var x []float32
		for row := range s.Count {
			for v := range values {
				x = append(x, float32(1+s.First+row)+float32(v)/8)
			}
		}
		shape := []int64{int64(s.Count), values}
		if stacked {
			shape = []int64{int64(s.Count), 1, values}
		}
		made, err := tensor.New(x, shape...)
		if err != nil {
			t.Fatal(err)
		}
		writeFile(t, filepath.Join(dir, s.File), map[string]tensor.Tensor{"x": made})
	}
	return &trying{reference: honest, judge: judge, o: consistency.Options{Interface: openDims(), Dir: dir, Shards: shards,
		Scratch: t.TempDir(), Budget: time.Minute, Run: time.Millisecond}}
}

// spread gives the cases of each shard one more input.
func (w *trying) spread(t *testing.T, name string, made func(cases int) (tensor.Tensor, error)) {
	t.Helper()
	for _, s := range w.o.Shards {
		path := filepath.Join(w.o.Dir, s.File)
		read, err := tensorfile.ReadFile(path, tensorfile.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		if read[name], err = made(s.Count); err != nil {
			t.Fatal(err)
		}
		writeFile(t, path, read)
	}
}

// judge asks for an error of at most 0.01, and for no new NaN.
func judge(_ evidence.Trial, outputs map[string]tensor.Result, _ int) (evidence.Verdict, []evidence.Reason) {
	y := outputs["y"]
	if y.NewNaN > 0 || y.MaxAbs > 0.01 {
		return evidence.VerdictFail, []evidence.Reason{{Code: "limit_exceeded", Output: "y", Message: fmt.Sprintf("maxAbs is %g", y.MaxAbs)}}
	}
	return evidence.VerdictPass, nil
}

// engine runs the cases and then the checks.
func (w *trying) engine(t *testing.T, m model) (evidence.Checks, []evidence.Reason, error) {
	t.Helper()
	set, engine := w.ready(t, m)
	found, err := set.Engine(t.Context(), engine, t.TempDir())
	w.open = found.Open
	return found.Checks, found.Failed, err
}

// ready runs the cases and the reference model.
func (w *trying) ready(t *testing.T, m model) (*consistency.Set, consistency.Engine) {
	t.Helper()
	set, err := consistency.New(w.o)
	if err != nil {
		t.Fatal(err)
	}
	processes := 0
	if err := set.Reference(t.Context(), w.reference.runner(t, &processes)); err != nil {
		t.Fatal(err)
	}
	outputs, golden, run := t.TempDir(), t.TempDir(), 0
	for _, s := range w.o.Shards {
		if err := m.shard(t, filepath.Join(w.o.Dir, s.File), filepath.Join(outputs, s.File), &run); err != nil {
			t.Fatal(err)
		}
		var alone int
		if err := w.reference.shard(t, filepath.Join(w.o.Dir, s.File), filepath.Join(golden, s.File), &alone); err != nil {
			golden = "" // of a reference model that fails; no test of these compares its batches
		}
	}
	comparison := parity.Run{Golden: golden, Outputs: map[string]tensor.Options{"y": {}}, Masks: parity.Masks{Inputs: map[string]string{}}}
	if w.where != "" {
		comparison.Masks.Inputs["y"] = w.where
	}
	engine := consistency.Engine{Run: m.runner(t, &w.processes), Outputs: outputs, Judge: w.judge, Comparison: comparison, Exact: w.exact}
	if w.loads != nil {
		engine.Load = w.loader(t)
	}
	return set, engine
}

// loader runs the model of each load.
func (w *trying) loader(t *testing.T) consistency.Loader {
	return func(ctx context.Context, inputs []consistency.Input, dir string) (outputs []string, err error) {
		var ignored int
		for i, m := range w.loads {
			folder, err := m.runner(t, &ignored)(ctx, slices.Clone(inputs), filepath.Join(dir, fmt.Sprint(i)))
			if err != nil {
				return nil, err
			}
			outputs = append(outputs, folder)
		}
		return outputs, nil
	}
}

// whats lists the checks.
func whats(checks evidence.Checks) []string {
	var all []string
	for _, p := range checks {
		all = append(all, strings.TrimSpace(fmt.Sprintf("%s %s", p.Trial, p.Size)))
	}
	return all
}

// every is what is checked of the interface: seq=4 is the size of the cases.
func every() []string {
	return []string{"repeat", "process", "batch batch=2", "dimension batch=16",
		"dimension seq=1", "dimension seq=32", "dimension all max: batch=16, seq=32", "beyond inputs*2"}
}
