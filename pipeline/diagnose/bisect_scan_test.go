package diagnose

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/divergence"
	"mlpromote.dev/mlpromote/pipeline/run"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
)

// Tensors are asked for in chunks: so many, and so many bytes, as far as shapes are known.
func TestBisectorChunks(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		shape []int64
		want  int64
	}{{nil, 8}, {[]int64{3, 5}, 120}, {[]int64{-1, 2}, 8 * openSize * 2}, {[]int64{0, 7}, 56}, {[]int64{1 << 40, 1 << 40}, 8 << 40}} {
		if got := (innerValue{Shape: c.shape}).bytes(); got != c.want {
			t.Errorf("bytes of %v: got %d, want %d", c.shape, got, c.want)
		}
	}
	b := &bisector{inner: make(map[string]innerValue)}
	add := func(n int, shape ...int64) {
		for range n {
			name := fmt.Sprint(len(b.wanted))
			b.wanted, b.inner[name] = append(b.wanted, name), innerValue{Shape: shape}
		}
	}
	lengths := func() []int {
		var all []int
		for _, chunk := range b.chunks() {
			all = append(all, len(chunk))
		}
		return all
	}
	if got := lengths(); got != nil {
		t.Errorf("of nothing: got %v", got)
	}
	add(chunkTensors+1, 4)
	if got, want := lengths(), []int{chunkTensors, 1}; !slices.Equal(got, want) {
		t.Errorf("of small tensors: got %v, want %v", got, want)
	}
	add(2, chunkBytes/16) // two halves, after a small one
	if got, want := lengths(), []int{chunkTensors, 2, 1}; !slices.Equal(got, want) {
		t.Errorf("with two of half a chunk: got %v, want %v", got, want)
	}
	add(1, chunkBytes/16)
	if got, want := lengths(), []int{chunkTensors, 2, 2}; !slices.Equal(got, want) {
		t.Errorf("with two that fill a chunk: got %v, want %v", got, want)
	}
	add(1, chunkBytes) // more than a chunk has, and so alone
	if got, want := lengths(), []int{chunkTensors, 2, 2, 1}; !slices.Equal(got, want) {
		t.Errorf("with one that is larger than a chunk: got %v, want %v", got, want)
	}
}

// An engine keeps the names of tensors if it has a fifth of the inner ones; outputs have names in every engine.
func TestKeepsNames(t *testing.T) {
	t.Parallel()
	names := func(n int) (all []string) {
		for i := range n {
			all = append(all, fmt.Sprint("inner", i))
		}
		return all
	}
	for _, c := range []struct {
		inner, kept int
		want        bool
	}{{0, 0, true}, {1, 0, false}, {1, 1, true}, {10, 1, false}, {10, 2, true}, {10, 10, true}} {
		b := &bisector{graph: divergence.Graph{Values: []divergence.Value{{Name: "y"}}, Outputs: []string{"y"}}}
		own := map[string]bool{"y": true}
		for i, name := range names(c.inner) {
			b.graph.Values = append(b.graph.Values, divergence.Value{Name: name})
			own[name] = i < c.kept
		}
		if got := b.keepsNames(own); got != c.want {
			t.Errorf("%d of %d inner tensors: got %t, want %t", c.kept, c.inner, got, c.want)
		}
	}
}

// So many problems are named, each once.
func TestBisectorProblems(t *testing.T) {
	t.Parallel()
	var b bisector
	for i := range 2 * (maxProblems + 1) {
		b.problem("tensor %d", i/2)
	}
	if len(b.problems) != maxProblems || b.problems[0] != "tensor 0" || b.problems[1] != "tensor 1" {
		t.Errorf("got %q, want %d, each once", b.problems, maxProblems)
	}
}

func TestNamesOf(t *testing.T) {
	t.Parallel()
	got := namesOf([]innerValue{{Value: divergence.Value{Name: "a"}}, {Value: divergence.Value{Name: "b"}}})
	if len(got) != 2 || !got["a"] || !got["b"] || got["c"] {
		t.Errorf("got %v, want a and b", got)
	}
}

// The graph of a model is its .onnx file, wherever it stands among the files; a model without one has its first file.
func TestGraphOf(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ files, want string }{
		{"model.onnx", "model.onnx"}, {"weights.bin model.onnx", "model.onnx"}, {"a.onnx weights.bin", "a.onnx"}, {"weights.bin other", "weights.bin"},
	} {
		var model []toolchain.Input
		for _, name := range strings.Fields(c.files) {
			model = append(model, toolchain.Input{Name: name})
		}
		if got := graphOf(model); got.Entry != c.want || len(got.Inputs) != len(model) {
			t.Errorf("%s: got %s with %d files, want %s", c.files, got.Entry, len(got.Inputs), c.want)
		}
	}
}

// An engine whose form its toolchain does not know cannot be compiled again for a bisection.
func TestCalibrationOfAnUnknownForm(t *testing.T) {
	t.Parallel()
	b := bisector{made: run.Recipe{Compile: map[string]any{"form": "other"}}, c: run.Candidate{Tool: run.Tool{Toolchain: run.Toolchain{Profile: toolchain.Profile{Name: "openvino"}}}}}
	if inputs, err := b.compilerCalibration(t.Context()); err == nil {
		t.Errorf("inputs %v, want an error", inputs)
	}
}

// The graph of a model is read from its file alone: not from another input, whatever that is called, and not from other files of the model.
func TestImporterOfABisection(t *testing.T) {
	t.Parallel()
	calibration := toolchain.Input{Role: toolchain.RoleCalibration, Name: "model.onnx"}
	weights := toolchain.Input{Role: toolchain.RoleModel, Name: "weights.bin"}
	b := bisector{}
	_, err := b.importer(t.Context(), run.Loadable{Entry: "model.onnx", Inputs: []toolchain.Input{calibration, weights}}, nil)
	if !registry.HasCode(err, registry.CodeInternal) {
		t.Errorf("error %v, want CodeInternal", err)
	}
}
