package parity_test

import (
	"context"
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/validators/accuracy"
	"mlpromote.dev/mlpromote/validators/parity"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// scored is a run over one shard of four cases with three classes: the reference model has three of four right, and
// the engine two.
func scored(t *testing.T) parity.Run {
	t.Helper()
	logits := func(best ...int64) map[string]tensor.Tensor {
		values := make([]float32, 3*len(best))
		for i, b := range best {
			values[3*i+int(b)] = 1
		}
		return map[string]tensor.Tensor{"logits": array(t, []int64{int64(len(best)), 3}, values...)}
	}
	one := []artifact.Shard{{File: "a.safetensors", Count: 4}}
	return parity.Run{
		Golden: shards(t, logits(0, 1, 2, 2)), Engine: shards(t, logits(0, 1, 1, 2)), Shards: one,
		Outputs: map[string]tensor.Options{"logits": {}},
		Labels: parity.Labels{
			Dir: shards(t, map[string]tensor.Tensor{"label": array[int64](t, []int64{4}, 0, 1, 2, 0)}), Tensor: "label", Output: "logits", Shards: one,
		},
	}
}

func TestAccuracy(t *testing.T) {
	t.Parallel()
	found, err := parity.Compare(t.Context(), scored(t))
	if err != nil {
		t.Fatal(err)
	}
	a := found.Accuracy
	if a == nil || a.Count != 4 || a.Reference != 0.75 || a.Engine != 0.5 || a.Drop != 0.25 {
		t.Errorf("accuracy %+v, want 0.75 of the reference model and 0.5 of the engine on 4 cases", a)
	}
	run := scored(t)
	run.Labels = parity.Labels{}
	if found, err := parity.Compare(t.Context(), run); err != nil || found.Accuracy != nil || found.Cases != 4 {
		t.Errorf("without labels: accuracy %+v of %d cases, error %v; want none of 4", found.Accuracy, found.Cases, err)
	}
}

// A case that has the inputs of an earlier one has no answer of its own, and no part in a rate.
func TestCopies(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		copies            map[int]bool
		answers           int
		reference, engine evidence.Figure
	}{
		"none":  {nil, 4, 0.75, 0.5},
		"one":   {map[int]bool{3: true}, 3, 1, evidence.Figure(2. / 3)},
		"three": {map[int]bool{1: true, 2: true, 3: true}, 1, 1, 1},
		"all":   {map[int]bool{0: true, 1: true, 2: true, 3: true}, 0, evidence.Figure(math.NaN()), evidence.Figure(math.NaN())},
	} {
		run := scored(t)
		run.Copies = c.copies
		found, err := parity.Compare(t.Context(), run)
		if err != nil {
			t.Fatal(err)
		}
		a, r := found.Accuracy, found.Outputs["logits"]
		same := func(got, want evidence.Figure) bool {
			return got == want || math.IsNaN(float64(got)) && math.IsNaN(float64(want))
		}
		if a.Count != c.answers || c.answers > 0 && (!same(a.Reference, c.reference) || !same(a.Engine, c.engine)) || r.FullCases != c.answers || r.Top1Cases != c.answers || r.Cases != 4 {
			t.Errorf("%s: accuracy %+v, %d and %d of %d cases; want %d answers, %v and %v", name, a, r.FullCases, r.Top1Cases, r.Cases, c.answers, c.reference, c.engine)
		}
	}
}

// More cases than fit in memory at once are compared to the last one.
func TestManyCases(t *testing.T) {
	t.Parallel()
	values := make([]float32, 130)
	same := map[string]tensor.Tensor{"y": array(t, []int64{130, 1}, values...)}
	changed := append([]float32(nil), values...)
	changed[63], changed[64], changed[129] = 1, 2, 3
	found, err := parity.Compare(t.Context(), parity.Run{
		Golden: shards(t, same), Engine: shards(t, map[string]tensor.Tensor{"y": array(t, []int64{130, 1}, changed...)}),
		Shards: []artifact.Shard{{File: "a.safetensors", First: 1000, Count: 130}}, Outputs: map[string]tensor.Options{"y": {}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if y := found.Outputs["y"]; y.Cases != 130 || y.Failed != 3 || y.MaxAbs != 3 || y.MaxAbsCase != 1129 {
		t.Errorf("%d cases, %d failed, largest error %g in case %d; want 130, 3, 3 and 1129", y.Cases, y.Failed, y.MaxAbs, y.MaxAbsCase)
	}
}

// Whatever cannot be read is an error, and no figures come with it.
func TestCompareRefuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		edit func(t *testing.T, run *parity.Run)
		is   error
		code registry.Code
		text string
	}{
		"no file of the reference model": {func(t *testing.T, run *parity.Run) { run.Golden = t.TempDir() }, fs.ErrNotExist, "", "a.safetensors"},
		"no file of the engine":          {func(t *testing.T, run *parity.Run) { run.Engine = t.TempDir() }, fs.ErrNotExist, "", "a.safetensors"},
		"no file of labels":              {func(t *testing.T, run *parity.Run) { run.Labels.Dir = t.TempDir() }, fs.ErrNotExist, "", "a.safetensors"},
		"no such labels":                 {func(_ *testing.T, run *parity.Run) { run.Labels.Tensor = "right" }, nil, registry.CodeInvalid, "labels: "},
		"no such scored output":          {func(_ *testing.T, run *parity.Run) { run.Labels.Output = "best" }, tensor.ErrMismatch, "", "best"},
		"labels without dimensions, beside a copy": {func(t *testing.T, run *parity.Run) {
			run.Copies = map[int]bool{1: true}
			run.Labels.Dir = shards(t, map[string]tensor.Tensor{"label": array[int64](t, nil, 1)})
		}, nil, registry.CodeInvalid, "labels have no dimensions"},
		"labels of other cases": {func(t *testing.T, run *parity.Run) {
			run.Labels.Dir = shards(t, map[string]tensor.Tensor{"label": array[int64](t, []int64{3}, 0, 1, 2)})
		}, nil, registry.CodeInvalid, "accuracy of output logits against labels label"},
		"an output without answers": {func(t *testing.T, run *parity.Run) {
			none := map[string]tensor.Tensor{"logits": array[float32](t, []int64{4, 0})}
			run.Labels.Metric, _ = accuracy.Find(accuracy.MAE)
			run.Golden, run.Engine = shards(t, none), shards(t, none)
			run.Labels.Dir = shards(t, map[string]tensor.Tensor{"label": array[float32](t, []int64{4, 0}), "region": array[int64](t, []int64{4}, 0, 0, 1, 1)})
			run.Labels.Slices = "region"
		}, tensor.ErrMismatch, registry.CodeInvalid, "accuracy of output logits against labels label: outputs of shape [4 0] have no elements"},
		"no output of the engine": {func(t *testing.T, run *parity.Run) {
			run.Engine = shards(t, map[string]tensor.Tensor{"other": array[float32](t, []int64{4, 3}, make([]float32, 12)...)})
		}, tensor.ErrMismatch, registry.CodeInternal, "engine output logits"},
		"no output of the reference model": {func(t *testing.T, run *parity.Run) {
			run.Golden = shards(t, map[string]tensor.Tensor{"other": array[float32](t, []int64{4, 3}, make([]float32, 12)...)})
		}, tensor.ErrMismatch, registry.CodeInvalid, "golden output logits"},
		"a file that is none": {func(t *testing.T, run *parity.Run) {
			run.Engine = t.TempDir()
			if err := os.WriteFile(filepath.Join(run.Engine, "a.safetensors"), []byte("no header"), 0o600); err != nil {
				t.Fatal(err)
			}
		}, tensor.ErrMalformed, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run := scored(t)
			c.edit(t, &run)
			found, err := parity.Compare(t.Context(), run)
			if err == nil || c.is != nil && !errors.Is(err, c.is) || c.code != "" && registry.CodeOf(err) != c.code || !strings.Contains(err.Error(), c.text) {
				t.Errorf("error %v (%s), want %v, code %q, with %q", err, registry.CodeOf(err), c.is, c.code, c.text)
			}
			if found.Outputs != nil || found.Accuracy != nil {
				t.Errorf("figures %+v come with an error", found)
			}
		})
	}
	t.Run("ended", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := parity.Compare(ctx, scored(t)); !errors.Is(err, context.Canceled) {
			t.Errorf("error %v, want context.Canceled", err)
		}
	})
}

func TestFigures(t *testing.T) {
	t.Parallel()
	found, err := parity.Compare(t.Context(), scored(t))
	if err != nil {
		t.Fatal(err)
	}
	f := parity.Figures("float32", found.Outputs["logits"])
	if f.DType != "float32" || f.MaxAbs != 1 || f.CosineMin != 0 || f.Worst == nil || f.Worst.Case != 2 {
		t.Errorf("figures %+v with the worst element %+v, want an error of 1 and a cosine of 0 in case 2", f, f.Worst)
	}
	if f.Top1 == nil || *f.Top1 != 0.75 {
		t.Errorf("top1 %v, want 0.75: the engine has another class in one of four cases", f.Top1)
	}
	if single := parity.Figures("float32", tensor.Result{}); single.Top1 != nil {
		t.Errorf("top1 %v of an output without classes, want none", *single.Top1)
	}
}
