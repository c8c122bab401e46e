//go:build cgo

package pipeline_test

import (
	"context"
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"mlpromote.dev/mlpromote/pipeline/build"
	"mlpromote.dev/mlpromote/pipeline/spec"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators/tensor"
	"mlpromote.dev/mlpromote/validators/tensor/tensorfile"
)

// Element types of ONNX.
const (
	onnxFloat = 1
	onnxUint8 = 2
	onnxInt8  = 3
	onnxInt64 = 7
)

// graph is an ONNX model that is written by hand.
type graph struct {
	nodes, weights []byte
	inputs         []byte
}

// node adds a node with whole numbers as attributes.
func (g *graph) node(op string, in []string, out string, attributes map[string]uint64) *graph {
	var n []byte
	for _, name := range in {
		n = str(n, 1, name)
	}
	n = str(str(n, 2, out), 4, op)
	for name, v := range attributes {
		n = sub(n, 5, num(num(str(nil, 1, name), 3, v), 20, 2))
	}
	g.nodes = sub(g.nodes, 1, n)
	return g
}

// weight adds a tensor of zeros with a number of bytes for each element.
func (g *graph) weight(name string, element uint64, bytes int, shape ...uint64) *graph {
	var w []byte
	for _, d := range shape {
		w = num(w, 1, d)
		bytes *= int(d)
	}
	g.weights = sub(g.weights, 5, sub(str(num(w, 2, element), 8, name), 9, make([]byte, bytes)))
	return g
}

// half adds the number 0.5, as the scale of what is quantized.
func (g *graph) half(name string) *graph {
	g.weights = sub(g.weights, 5, sub(str(num(nil, 2, onnxFloat), 8, name), 9, []byte{0, 0, 0, 0x3f}))
	return g
}

// input adds the input x. Dimensions of 0 have a symbol that is named after their axis.
func (g *graph) input(element uint64, shape ...uint64) *graph {
	g.inputs = sub(g.inputs, 11, described("x", element, shape...))
	return g
}

func described(name string, element uint64, shape ...uint64) []byte {
	var dims []byte
	for axis, d := range shape {
		size := num(nil, 1, d)
		if d == 0 {
			size = str(nil, 2, string(rune('a'+axis)))
		}
		dims = sub(dims, 1, size)
	}
	return sub(str(nil, 1, name), 2, sub(nil, 1, sub(num(nil, 1, element), 2, dims)))
}

// onnx is the file, with the output y of float32.
func (g *graph) onnx(shape ...uint64) []byte { return g.output(onnxFloat, shape...) }

// output is the file, with the output y.
func (g *graph) output(element uint64, shape ...uint64) []byte {
	all := slices.Concat(str(g.nodes, 2, "graph"), g.weights, g.inputs, sub(nil, protowire.Number(12), described("y", element, shape...)))
	return sub(sub(num(nil, 1, 8), 7, all), 8, num(nil, 2, 17))
}

// tokens select from a table.
func tokens(element, length, rows uint64) []byte {
	g := new(graph).input(element, 1, length).weight("table", onnxFloat, 4, rows, 1)
	return g.node("Cast", []string{"x"}, "ids", map[string]uint64{"to": onnxInt64}).node("Gather", []string{"table", "ids"}, "y", nil).onnx(1, length, 1)
}

// image is read by a convolution.
func image(element uint64) []byte {
	g := new(graph).input(element, 1, 3, 8, 8).weight("w", onnxFloat, 4, 2, 3, 3, 3)
	return g.node("Cast", []string{"x"}, "f", map[string]uint64{"to": onnxFloat}).node("Conv", []string{"f", "w"}, "y", nil).onnx(1, 2, 6, 6)
}

// dequantized is dequantized first.
func dequantized(element uint64) []byte {
	g := new(graph).input(element, 1, 64).half("s")
	return g.node("DequantizeLinear", []string{"x", "s"}, "y", nil).onnx(1, 64)
}

// plainNumbers are cast and nothing else.
func plainNumbers(element uint64) []byte {
	return new(graph).input(element, 1, 64).node("Cast", []string{"x"}, "y", map[string]uint64{"to": onnxFloat}).onnx(1, 64)
}

// seen is a runtime that notes the values of the input x that the reference is run on.
type seen struct {
	linear
	values *[]float64
}

func (s seen) Do(_ context.Context, job toolchain.Job, _ string) (toolchain.Outcome, error) {
	for _, in := range job.Inputs {
		if in.Role != toolchain.RoleCases {
			continue
		}
		f, err := tensorfile.Open(in.Path, tensorfile.Limits{})
		if err != nil {
			return toolchain.Outcome{}, err
		}
		defer f.Close()
		x, err := f.Tensor("x")
		if err != nil {
			return toolchain.Outcome{}, err
		}
		*s.values = append(*s.values, numbers(x)...)
	}
	return toolchain.Outcome{}, errSeen
}

var errSeen = registry.Errorf(registry.CodeUnavailable, "that was all")

func numbers(x tensor.Tensor) []float64 {
	var all []float64
	for i := 0; i < len(x.Data); i += x.DType.Size() {
		switch x.DType {
		case tensor.Float32:
			all = append(all, float64(math.Float32frombits(binary.LittleEndian.Uint32(x.Data[i:]))))
		case tensor.Int64:
			all = append(all, float64(int64(binary.LittleEndian.Uint64(x.Data[i:]))))
		case tensor.Uint8:
			all = append(all, float64(x.Data[i]))
		case tensor.Int8:
			all = append(all, float64(int8(x.Data[i])))
		}
	}
	return all
}

// Generated cases have values that the graph can take, or those that the spec says.
func TestGeneratedValues(t *testing.T) {
	t.Parallel()
	const large = 5000 // of 64 numbers, most pass half of each bound
	for name, c := range map[string]struct {
		model  []byte
		inputs string     // of the spec
		least  [2]float64 // the smallest value is between them
		most   [2]float64 // and the largest between these
		only   []float64
	}{
		"tokens":                          {model: tokens(onnxInt64, 64, 40), least: [2]float64{0, 5}, most: [2]float64{30, 39}},
		"tokens of eight bits":            {model: tokens(onnxUint8, 64, 40), least: [2]float64{0, 5}, most: [2]float64{30, 39}},
		"a table of more than eight bits": {model: tokens(onnxUint8, 64, 200), least: [2]float64{0, 20}, most: [2]float64{100, 127}},
		"the same with a sign":            {model: tokens(onnxInt8, 64, 200), least: [2]float64{0, 20}, most: [2]float64{100, 127}},
		"a table for whole numbers":       {model: tokens(onnxInt64, 64, 200), least: [2]float64{0, 20}, most: [2]float64{150, 199}},
		"bytes of any use":                {model: plainNumbers(onnxUint8), least: [2]float64{0, 255}, most: [2]float64{0, 255}},
		"pixels of floats":                {model: image(onnxFloat), least: [2]float64{0, 0.2}, most: [2]float64{0.8, 1}},
		"pixels of bytes":                 {model: image(onnxUint8), least: [2]float64{0, 50}, most: [2]float64{200, 255}},
		"quantized, without a sign":       {model: dequantized(onnxUint8), least: [2]float64{0, 50}, most: [2]float64{200, 255}},
		"quantized, with a sign":          {model: dequantized(onnxInt8), least: [2]float64{-128, -70}, most: [2]float64{70, 127}},
		"floats":                          {model: plainNumbers(onnxFloat), least: [2]float64{-large, -1}, most: [2]float64{1, large}},
		"between bounds of the spec":      {model: plainNumbers(onnxFloat), inputs: "{x: {min: 2, max: 3}}", least: [2]float64{2, 2.2}, most: [2]float64{2.8, 3}},
		"bounds for an image":             {model: image(onnxFloat), inputs: "{x: {min: 0, max: 255}}", least: [2]float64{0, 50}, most: [2]float64{200, 255}},
		"values of the spec":              {model: plainNumbers(onnxInt64), inputs: "{x: {values: [3, 5]}}", least: [2]float64{3, 3}, most: [2]float64{5, 5}, only: []float64{3, 5}},
		"values of the spec as tokens":    {model: tokens(onnxInt64, 64, 40), inputs: "{x: {values: [3, 5]}}", least: [2]float64{3, 3}, most: [2]float64{5, 5}, only: []float64{3, 5}},
		"a mask":                          {model: mask(), least: [2]float64{0, 1}, most: [2]float64{1, 1}, only: []float64{0, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var values []float64
			w := setupOn(t, seen{values: &values}, 1.5)
			text := "model: m\nversion: 1.0.0\nsource: model.onnx\nvariants: [fp32]\ntargets: [linux/amd64/v1]\ncases: {generate: 4, seed: 1}\n"
			if strings.HasPrefix(name, "quantized") {
				text = strings.Replace(text, "[fp32]", "[{name: int8, quantize: {method: none}}]", 1)
			}
			if c.inputs != "" {
				text = strings.Replace(text, "seed: 1", "seed: 1, inputs: "+c.inputs, 1)
			}
			if err := os.WriteFile(filepath.Join(w.dir, "model.onnx"), c.model, 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := build.Build(t.Context(), w.p, w.spec(t, text), build.Options{}); registry.CodeOf(err) != registry.CodeUnavailable {
				t.Fatalf("error %v, want that of the runtime", err)
			}
			if len(values) == 0 {
				t.Fatal("the reference was run on no values")
			}
			if least := slices.Min(values); least < c.least[0] || least > c.least[1] {
				t.Errorf("the smallest value is %v, want it from %v to %v", least, c.least[0], c.least[1])
			}
			if most := slices.Max(values); most < c.most[0] || most > c.most[1] {
				t.Errorf("the largest value is %v, want it from %v to %v", most, c.most[0], c.most[1])
			}
			for _, v := range values {
				if len(c.only) > 0 && !slices.Contains(c.only, v) {
					t.Errorf("a value is %v, want one of %v", v, c.only)
				}
			}
		})
	}
}

// mask is a model whose input is named as one.
func mask() []byte {
	// The input of the test is called x, so what makes it a mask is that it is compared.
	g := new(graph).input(onnxInt64, 1, 64).weight("zero", onnxInt64, 8)
	return g.node("Equal", []string{"x", "zero"}, "e", nil).node("Cast", []string{"e"}, "y", map[string]uint64{"to": onnxFloat}).onnx(1, 64)
}

// A draft says which generated inputs show little, and how long sequences are.
func TestDraftWarns(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		model []byte
		want  string // empty for no warning
		not   string
	}{
		"floats":               {plainNumbers(onnxFloat), "", ""},
		"pixels":               {image(onnxFloat), `random pixels for "x" are like no input in use`, "one element"},
		"tokens":               {tokens(onnxInt64, 64, 40), `random token ids for "x" are like no input in use`, "one element"},
		"sequences of no size": {tokens(onnxInt64, 0, 40), `random token ids for "x" are like no input in use`, "one element"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			model := filepath.Join(dir, "model.onnx")
			if err := os.WriteFile(model, c.model, 0o600); err != nil {
				t.Fatal(err)
			}
			drafted, err := draftOf(model, filepath.Join(dir, spec.File))
			if err != nil {
				t.Fatal(err)
			}
			got := strings.Join(drafted.Warnings, "\n")
			if !strings.HasPrefix(got, c.want) || c.want == "" && got != "" {
				t.Errorf("warnings %q, want %q", got, c.want)
			}
			if c.not != "" && strings.Contains(got, c.not) {
				t.Errorf("warnings %q, want nothing of %q", got, c.not)
			}
		})
	}
}

// A build says which generated inputs show little, and which sequences are too short to show more.
func TestGeneratedCasesWarn(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		model []byte
		shape string // of the sequence, in the spec
		short bool
		want  string // empty for no warning
	}{
		"floats":                   {plainNumbers(onnxFloat), "", false, ""},
		"pixels":                   {image(onnxFloat), "", false, `cases: random pixels for "x" are like no input in use`},
		"tokens of a fixed number": {tokens(onnxInt64, 64, 40), "", false, `cases: random token ids for "x" are like no input in use`},
		"sequences of one":         {tokens(onnxInt64, 0, 40), "[1, 1, 8]", true, `cases: random token ids for "x" are like no input in use`},
		"sequences of two":         {tokens(onnxInt64, 0, 40), "[1, 2, 8]", false, `cases: random token ids for "x" are like no input in use`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setupOn(t, seen{values: new([]float64)}, 1.5)
			text := "model: m\nversion: 1.0.0\nsource: model.onnx\nvariants: [fp32]\ntargets: [linux/amd64/v1]\ncases: {generate: 4, seed: 1}\n"
			if c.shape != "" {
				text += "shapes: {b: " + c.shape + "}\n"
			}
			if err := os.WriteFile(filepath.Join(w.dir, "model.onnx"), c.model, 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := build.Build(t.Context(), w.p, w.spec(t, text), build.Options{}); registry.CodeOf(err) != registry.CodeUnavailable {
				t.Fatalf("error %v, want that of the runtime", err)
			}
			said := slices.DeleteFunc(w.warnings, func(text string) bool { return !strings.HasPrefix(text, "cases: random ") })
			got := strings.Join(said, "\n")
			if !strings.HasPrefix(got, c.want) || c.want == "" && got != "" {
				t.Errorf("warnings %q, want %q", got, c.want)
			}
			if short := strings.Contains(got, `all sequences of "x" have one element`); short != c.short {
				t.Errorf("warnings %q, say that sequences have one element: %t, want %t", got, short, c.short)
			}
		})
	}
}
