//go:build cgo

package pipeline_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/pipeline/toolchain/drivers"
	"mlpromote.dev/mlpromote/pipeline/toolchain/ort"
	"mlpromote.dev/mlpromote/pipeline/toolchain/toolchaintest"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/validators/tensor"
	"mlpromote.dev/mlpromote/validators/tensor/tensorfile"
)

// TestMain makes this test program answer as the child that it starts.
func TestMain(m *testing.M) {
	os.Exit(toolchaintest.Main(m, map[string]func() int{
		ort.Args()[0]: func() int { return ort.Main(context.Background(), os.Stdin, os.Stderr) },
	}))
}

// A step whose bytes differ is "semantic" where ONNX Runtime computes the same of both, bit
// for bit and for every case, and "none" where the last bit of one output is another.
func TestReproducibleByOutputs(t *testing.T) {
	t.Parallel()
	installer := toolchaintest.Installer(t, ort.Name)
	source, err := drivers.Find(ort.Name)
	if err != nil {
		t.Fatal(err)
	}
	cases := filepath.Join(t.TempDir(), "cases")
	writeCases(t, cases, []float32{0, 0, 3}) // of which the last alone shows a weight
	for name, c := range map[string]struct {
		compiler compiler
		want     evidence.Reproducibility
	}{
		"the same bytes":                       {compiler{}, evidence.ReproducibleBytes},
		"other text":                           {compiler{text: true}, evidence.ReproducibleSemantic},
		"another weight, in its last bit":      {compiler{weight: true}, evidence.ReproducibleNone},
		"other text and weight":                {compiler{text: true, weight: true}, evidence.ReproducibleNone},
		"another weight that no case is about": {compiler{hidden: true}, evidence.ReproducibleSemantic},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.compiler.times = new(atomic.Int32)
			job := toolchain.Job{Verb: toolchain.VerbProbe}
			got, err := again(t.Context(), c.compiler, ort.New(ort.Options{Installs: installer}), source.Profile, job, cases, 3, t.TempDir())
			if err != nil || got != c.want {
				t.Errorf("class %q (%v), want %q", got, err, c.want)
			}
		})
	}
}

// compiler makes an engine y = x * w + 0 * v whose bytes differ each time, as its fields say.
type compiler struct {
	times                *atomic.Int32
	text, weight, hidden bool
}

func (compiler) Identity(context.Context) (toolchain.Identity, error) {
	return toolchain.Identity{Name: "compiler", Version: "1"}, nil
}

func (c compiler) Do(_ context.Context, _ toolchain.Job, outDir string) (toolchain.Outcome, error) {
	n := c.times.Add(1)
	w, v, text := float32(1.5), float32(1), "made by a compiler"
	if c.weight {
		w = math.Float32frombits(math.Float32bits(w) + uint32(n))
	}
	if c.hidden {
		v += float32(n)
	}
	if c.text {
		text = fmt.Sprintf("made at moment %d", n)
	}
	if err := os.MkdirAll(outDir, 0o755); err != nil {
		return toolchain.Outcome{}, err
	}
	if err := os.WriteFile(filepath.Join(outDir, "model.onnx"), scaling(w, v, text), 0o600); err != nil {
		return toolchain.Outcome{}, err
	}
	files, err := toolchain.Collect(outDir)
	return toolchain.Outcome{Files: files}, err
}

// scaling is an ONNX model that gives x * w + zero * v, for a zero of its own.
func scaling(w, v float32, text string) []byte { return scalingOf(w, v, text, floats) }

// scalingOf is scaling with x and y as described.
func scalingOf(w, v float32, text string, described func(name string) []byte) []byte {
	return scalingBy("Mul", w, v, text, described)
}

// scalingBy is scalingOf with another operator for the first product.
func scalingBy(operator string, w, v float32, text string, described func(name string) []byte) []byte {
	return scalingWith(nil, operator, w, v, text, described)
}

// scalingWith is scalingBy with an attribute of its last node, in the encoding of ONNX; nil: none.
func scalingWith(attribute []byte, operator string, w, v float32, text string, described func(name string) []byte) []byte {
	var graph []byte
	for _, node := range [][]string{{"x", "w", "a", operator}, {"zero", "v", "b", "Mul"}, {"a", "b", "y", "Add"}} {
		encoded := str(str(str(nil, 1, node[0]), 1, node[1]), 2, node[2])
		encoded = str(encoded, 4, node[3])
		if attribute != nil && node[3] == "Add" {
			encoded = sub(encoded, 5, attribute)
		}
		graph = sub(graph, 1, encoded)
	}
	graph = str(graph, 2, "scaling")
	for _, i := range []struct {
		name  string
		value float32
	}{{"w", w}, {"v", v}, {"zero", 0}} {
		raw := binary.LittleEndian.AppendUint32(nil, math.Float32bits(i.value))
		initializer := num(num(nil, 1, 1), 2, 1)
		graph = sub(graph, 5, sub(str(initializer, 8, i.name), 9, raw))
	}
	graph = sub(sub(graph, 11, described("x")), 12, described("y"))
	model := str(num(nil, 1, 8), 6, text)
	return sub(sub(model, 7, graph), 8, num(nil, 2, 17))
}

// floats describes a value of shape [1, 1].
func floats(name string) []byte { return value(name, 1) }

// texts is floats for strings.
func texts(name string) []byte { return value(name, 8) }

// value describes a value of shape [1, 1] and an element type of ONNX.
func value(name string, element uint64) []byte {
	one := num(nil, 1, 1)
	shape := sub(sub(nil, 1, one), 1, one)
	return sub(str(nil, 1, name), 2, sub(nil, 1, sub(num(nil, 1, element), 2, shape)))
}

func num(b []byte, field protowire.Number, v uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), v)
}

func sub(b []byte, field protowire.Number, m []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, field, protowire.BytesType), m)
}

func str(b []byte, field protowire.Number, s string) []byte { return sub(b, field, []byte(s)) }

// writeCases writes a case of one number for each of x.
func writeCases(t *testing.T, path string, x []float32) {
	t.Helper()
	var data []byte
	for _, v := range x {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(v))
	}
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := tensorfile.Write(f, map[string]tensor.Tensor{"x": {DType: "float32", Shape: []int64{int64(len(x)), 1}, Data: data}}, nil); err != nil {
		t.Fatal(err)
	}
}
