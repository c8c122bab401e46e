package parity_test

import (
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/validators/parity"
	"mlpromote.dev/mlpromote/validators/tensor"
	"mlpromote.dev/mlpromote/validators/tensor/tensorfile"
)

// shards writes one safetensors file for each set of tensors into a folder.
func shards(t *testing.T, sets ...map[string]tensor.Tensor) string {
	t.Helper()
	dir := t.TempDir()
	for i, tensors := range sets {
		f, err := os.Create(filepath.Join(dir, list[i].File))
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(tensorfile.Write(f, tensors, nil), f.Close()); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// list is two shards of two cases each.
var list = []artifact.Shard{{File: "a.safetensors", First: 0, Count: 2}, {File: "b.safetensors", First: 2, Count: 2}}

func array[T tensor.Scalar](t *testing.T, shape []int64, values ...T) tensor.Tensor {
	t.Helper()
	made, err := tensor.New(values, shape...)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// tokens is an output [2, seq, 2] whose values are those.
func tokens(t *testing.T, values ...float32) map[string]tensor.Tensor {
	t.Helper()
	return map[string]tensor.Tensor{"tokens": array(t, []int64{2, int64(len(values) / 4), 2}, values...)}
}

// compared is a run over two shards, of seq 2 and 3, whose engine differs by 0.5 where
// the mask counts, once, and wildly where it does not.
func compared(t *testing.T, mask ...map[string]tensor.Tensor) parity.Run {
	t.Helper()
	nan := float32(math.NaN())
	run := parity.Run{
		Golden:  shards(t, tokens(t, 1, 2, 3, 4, 5, 6, 7, 8), tokens(t, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12)),
		Engine:  shards(t, tokens(t, 1, 2, nan, 99, 5, 6, 7, 8), tokens(t, 1, 2, 3, 4, -5, 6, -7, -8, 9, 10, 11, 11.5)),
		Shards:  list,
		Outputs: map[string]tensor.Options{"tokens": {ATol: 0.25}},
	}
	if mask != nil {
		run.Masks = parity.Masks{Dir: shards(t, mask...), Shards: list, Inputs: map[string]string{"tokens": "mask"}}
	}
	return run
}

func masks[T tensor.Scalar](t *testing.T, first, second []T) []map[string]tensor.Tensor {
	t.Helper()
	return []map[string]tensor.Tensor{
		{"mask": array(t, []int64{2, 2}, first...)},
		{"mask": array(t, []int64{2, 3}, second...)},
	}
}

func TestMask(t *testing.T) {
	t.Parallel()
	for name, given := range map[string][]map[string]tensor.Tensor{
		"int64":   masks(t, []int64{1, 0, 1, 1}, []int64{1, 1, 0, 0, 1, 1}),
		"any":     masks(t, []int64{7, 0, -1, 1}, []int64{1, 1, 0, 0, 1 << 40, 1}),
		"float32": masks(t, []float32{1, 0, 0.5, 1}, []float32{1, 1, 0, 0, 1, float32(math.NaN())}),
		"bool":    masks(t, []bool{true, false, true, true}, []bool{true, true, false, false, true, true}),
	} {
		found, err := parity.Compare(t.Context(), compared(t, given...))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got := found.Outputs["tokens"]
		if got.Cases != 4 || got.Elements != 14 || got.Failed != 1 || got.NewNaN != 0 || got.MaxAbs != 0.5 || got.MaxAbsCase != 3 || got.Top1Rows != 7 {
			t.Errorf("%s: figures %+v", name, got)
		}
		want := &tensor.Element{Case: 3, Index: []int64{0, 2, 1}, Reference: 12, Engine: 11.5, Excess: 0.25}
		if diff := cmp.Diff(want, got.Worst); diff != "" {
			t.Errorf("%s: worst element\n%s", name, diff)
		}
	}
}

func TestWithoutMaskAllCounts(t *testing.T) {
	t.Parallel()
	found, err := parity.Compare(t.Context(), compared(t))
	if err != nil {
		t.Fatal(err)
	}
	if got := found.Outputs["tokens"]; got.Elements != 20 || got.Failed != 6 || got.NewNaN != 1 {
		t.Errorf("figures %+v", got)
	}
}

// A mask of every dimension decides on single elements, one of the first on whole cases.
func TestMaskRanks(t *testing.T) {
	t.Parallel()
	single := make([]int64, 12)
	single[7] = 1 // second case, first row, second column
	found, err := parity.Compare(t.Context(), compared(t,
		map[string]tensor.Tensor{"mask": array(t, []int64{2, 2, 2}, make([]int64, 8)...)},
		map[string]tensor.Tensor{"mask": array(t, []int64{2, 3, 2}, single...)}))
	if err != nil {
		t.Fatal(err)
	}
	want := &tensor.Element{Case: 3, Index: []int64{0, 0, 1}, Reference: 8, Engine: -8, Excess: 15.75}
	if got := found.Outputs["tokens"]; got.Elements != 1 || got.Cases != 4 || cmp.Diff(want, got.Worst) != "" {
		t.Errorf("single elements: %+v, worst %+v", got, got.Worst)
	}
	found, err = parity.Compare(t.Context(), compared(t,
		map[string]tensor.Tensor{"mask": array[int64](t, []int64{2}, 0, 1)}, map[string]tensor.Tensor{"mask": array[int64](t, []int64{2}, 0, 0)}))
	if err != nil {
		t.Fatal(err)
	}
	if got := found.Outputs["tokens"]; got.Elements != 4 || got.Failed != 0 || got.Worst != nil {
		t.Errorf("whole cases: %+v", got)
	}
}

// Where nothing counts there are no elements: whoever judges must not take that for agreement.
func TestMaskOfZeros(t *testing.T) {
	t.Parallel()
	found, err := parity.Compare(t.Context(), compared(t, masks(t, make([]int64, 4), make([]int64, 6))...))
	if err != nil {
		t.Fatal(err)
	}
	if got := found.Outputs["tokens"]; got.Elements != 0 || got.Cases != 4 {
		t.Errorf("figures %+v", got)
	}
}

// A mask that does not fit is a mistake of the release, not a mismatch of the engine.
func TestMaskThatDoesNotFit(t *testing.T) {
	t.Parallel()
	ones := func(shape ...int64) map[string]tensor.Tensor {
		n := int64(1)
		for _, d := range shape {
			n *= d
		}
		return map[string]tensor.Tensor{"mask": array(t, shape, make([]int64, n)...)}
	}
	for name, c := range map[string]struct {
		first map[string]tensor.Tensor
		want  string
	}{
		"length": {ones(2, 3), "output tokens: case 0: its mask has shape [1 3] and the output [1 2 2]: want a mask whose dimensions are the output's first"},
		"rank":   {ones(2, 2, 2, 1), "its mask has shape [1 2 2 1] and the output [1 2 2]"},
		"cases":  {ones(1, 2), "mask of output tokens: "},
		"name":   {map[string]tensor.Tensor{"other": array[int64](t, []int64{2}, 1, 1)}, "mask of output tokens: "},
	} {
		_, err := parity.Compare(t.Context(), compared(t, c.first, ones(2, 3)))
		if !registry.HasCode(err, registry.CodeInvalid) || errors.Is(err, tensor.ErrMismatch) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want CodeInvalid, no mismatch, and %q", name, err, c.want)
		}
	}
}

// An engine of another shape is refused for that, whatever the mask.
func TestMaskOfAnotherEngine(t *testing.T) {
	t.Parallel()
	run := compared(t, masks(t, make([]int64, 4), make([]int64, 6))...)
	run.Engine = shards(t, tokens(t, make([]float32, 12)...), tokens(t, make([]float32, 12)...))
	if _, err := parity.Compare(t.Context(), run); !errors.Is(err, tensor.ErrMismatch) {
		t.Errorf("error %v, want a mismatch", err)
	}
}

// The mask is read again to place the worst element. Where the shards of the cases do not fit those of the
// outputs, that fails, and no figures come with the error.
func TestMaskOfOtherShards(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		shards []artifact.Shard
		is     error
	}{
		"a shard of more cases than its file": {[]artifact.Shard{{File: "a.safetensors", First: 0, Count: 4}, list[1]}, tensor.ErrMismatch},
		"a shard without a file":              {append(slices.Clone(list), artifact.Shard{File: "c.safetensors", First: 3, Count: 1}), fs.ErrNotExist},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run := compared(t, masks(t, []int64{1, 0, 1, 1}, []int64{1, 1, 0, 0, 1, 1})...)
			run.Masks.Shards = c.shards
			found, err := parity.Compare(t.Context(), run)
			if !errors.Is(err, c.is) {
				t.Errorf("error %v, want %v", err, c.is)
			}
			if found.Outputs != nil {
				t.Errorf("figures %+v come with an error", found.Outputs)
			}
		})
	}
}

// An output without a mask of its own counts everywhere, beside one that has a mask.
func TestMaskOfAnotherOutput(t *testing.T) {
	t.Parallel()
	run := compared(t, masks(t, make([]int64, 4), make([]int64, 6))...)
	run.Masks.Inputs = map[string]string{"other": "mask"}
	found, err := parity.Compare(t.Context(), run)
	if err != nil {
		t.Fatal(err)
	}
	got := found.Outputs["tokens"]
	if got.Elements != 20 || got.Worst == nil {
		t.Fatalf("%d elements with the worst at %+v, want 20", got.Elements, got.Worst)
	}
	if diff := cmp.Diff([]int64{0, 1, 0}, got.Worst.Index); diff != "" {
		t.Errorf("place of the worst element, wanted with -:\n%s", diff)
	}
}

// A mask that cannot be read is an error: elements must not count by default.
func TestMaskOfAShardThatIsMissing(t *testing.T) {
	t.Parallel()
	run := compared(t, masks(t, make([]int64, 4), make([]int64, 6))...)
	run.Masks.Dir = t.TempDir()
	if _, err := parity.Compare(t.Context(), run); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v, want fs.ErrNotExist", err)
	}
}
