package onnx_test

import (
	"bytes"
	"fmt"
	"path/filepath"
	"reflect"
	"testing"

	"mlpromote.dev/mlpromote/validators/format"
	"mlpromote.dev/mlpromote/validators/format/bound"
	"mlpromote.dev/mlpromote/validators/format/formattest"
	"mlpromote.dev/mlpromote/validators/format/onnx"
)

// models of tests that runtimes run too; make.py there makes them.
const runnable = "../../../cmd/mlpromote/testdata/models/"

// What the graph says about its inputs bounds what they can be.
func TestUses(t *testing.T) {
	t.Parallel()
	length := map[int]onnx.Sizes{1: {Min: 1, Opt: 16, Max: 20, Why: "sequence of at most 20 positions"}}
	pixels := onnx.Sizes{Min: 112, Opt: 224, Max: 256, Why: "convolutions with strides of 4"}
	for name, c := range map[string]struct {
		file string
		want map[string]onnx.Use
	}{
		"tokens, positions and a mask": {runnable + "tokens.onnx", map[string]onnx.Use{
			"input_ids": {Rows: 50, Sizes: length}, "attention_mask": {Mask: true, Sizes: length}}},
		"images of any size": {runnable + "segments.onnx", map[string]onnx.Use{
			"image": {Image: true, Sizes: map[int]onnx.Sizes{2: pixels, 3: pixels}}}},
		"images of one size":       {"../../../examples/digits/digits.onnx", map[string]onnx.Use{"image": {Image: true, Sizes: map[int]onnx.Sizes{}}}},
		"nothing about an input":   {runnable + "recent.onnx", map[string]onnx.Use{"x": {Sizes: map[int]onnx.Sizes{}}}},
		"an input of sizes, no id": {runnable + "stuck.onnx", map[string]onnx.Use{"x": {Sizes: map[int]onnx.Sizes{}}, "shape": {Sizes: map[int]onnx.Sizes{}}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, err := format.OpenONNX(filepath.FromSlash(c.file), bound.Limits{})
			if err != nil {
				t.Fatal(err)
			}
			if got := m.Uses(); !reflect.DeepEqual(got, c.want) {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

// wired is a node with inputs, outputs and attributes.
func wired(op string, in, out []string, attributes ...formattest.Msg) formattest.Msg {
	n := formattest.Msg{}
	for _, name := range in {
		n = n.Str(1, name)
	}
	for _, name := range out {
		n = n.Str(2, name)
	}
	n = n.Str(4, op)
	for _, a := range attributes {
		n = n.Sub(5, a)
	}
	return formattest.Msg{}.Sub(1, n)
}

// numbers is an attribute that is a list of whole numbers.
func numbers(name string, all ...int64) formattest.Msg {
	a := formattest.Msg{}.Str(1, name).Num(20, 7)
	for _, n := range all {
		a = a.Num(8, n)
	}
	return a
}

func constant(name string, dtype int64, dims ...int64) formattest.Msg {
	t := formattest.Msg{}
	for _, d := range dims {
		t = t.Num(1, d)
	}
	return formattest.Initializer(t.Num(2, dtype).Str(8, name))
}

// input is the graph input i; a size of 0 is open.
func input(dtype int64, dims ...int64) formattest.Msg {
	const name = "i"
	shape := formattest.Msg{}
	for i, d := range dims {
		if d == 0 {
			shape = shape.Sub(1, formattest.Msg{}.Str(2, fmt.Sprint(name, i)))
			continue
		}
		shape = shape.Sub(1, formattest.Msg{}.Num(1, d))
	}
	return formattest.Msg{}.Sub(11, formattest.Msg{}.Str(1, name).Sub(2, formattest.Msg{}.Sub(1, formattest.Msg{}.Num(1, dtype).Sub(2, shape))))
}

const float32Type, int64Type = 1, 7

// Each kind of graph bounds its input i.
func TestUsesOfGraphs(t *testing.T) {
	t.Parallel()
	table, ids := constant("table", float32Type, 7, 4), input(int64Type, 0, 0)
	image := input(float32Type, 0, 3, 0, 0)
	kernel := constant("k", float32Type, 8, 3, 3, 3)
	conv := wired("Conv", []string{"i", "k"}, []string{"c"}, numbers("strides", 2, 2))
	for name, c := range map[string]struct {
		parts []formattest.Msg
		rows  int64
		mask  bool
		image bool
		sizes string // of the last axis
	}{
		"through Cast and Unsqueeze": {[]formattest.Msg{ids, table, wired("Cast", []string{"i"}, []string{"a"}), wired("Unsqueeze", []string{"a"}, []string{"b"}),
			wired("Gather", []string{"table", "b"}, []string{"y"})}, 7, false, false, "1 16 64"},
		"the smaller of two tables": {[]formattest.Msg{ids, table, constant("small", float32Type, 5, 4), wired("Gather", []string{"table", "i"}, []string{"a"}),
			wired("Gather", []string{"small", "i"}, []string{"b"})}, 5, false, false, "1 16 64"},
		"an axis from the end":      {[]formattest.Msg{ids, table, wired("Gather", []string{"table", "i"}, []string{"y"}, numbers("axis", -1))}, 4, false, false, "1 16 64"},
		"an axis that is not there": {[]formattest.Msg{ids, table, wired("Gather", []string{"table", "i"}, []string{"y"}, numbers("axis", 2))}, 0, false, false, "1 16 64"},
		"a table that is quantized": {[]formattest.Msg{ids, table, wired("DequantizeLinear", []string{"table"},
			[]string{"t"}), wired("Gather", []string{"t", "i"}, []string{"y"})}, 7, false, false, "1 16 64"},
		"not after arithmetic": {[]formattest.Msg{ids, table, wired("Add", []string{"i", "i"}, []string{"a"}), wired("Gather", []string{"table", "a"}, []string{"y"})}, 0, false, false, "1 16 64"},
		"not what it selects": {[]formattest.Msg{ids, table, constant("t2", float32Type, 2, 2), wired("Gather", []string{"table",
			"i"}, []string{"a"}), wired("Gather", []string{"t2", "a"}, []string{"y"})}, 7, false, false, "1 16 64"},
		"compared": {[]formattest.Msg{ids, wired("Greater", []string{"i", "zero"}, []string{"y"})}, 0, true, false, "1 16 64"},
		"ids that are compared too": {[]formattest.Msg{ids, table, wired("Equal", []string{"i", "zero"},
			[]string{"b"}), wired("Gather", []string{"table", "i"}, []string{"y"})}, 7, false, false, "1 16 64"},
		"a float that is compared": {[]formattest.Msg{input(float32Type, 0, 0), wired("Greater", []string{"i", "zero"}, []string{"y"})}, 0, false, false, ""},
		"positions cut from a table": {[]formattest.Msg{ids, constant("p", float32Type, 1, 30, 4), wired("Shape", []string{"i"},
			[]string{"s"}), wired("Slice", []string{"p", "zero", "s"}, []string{"y"})}, 0, false, false, "1 16 30"},
		"positions counted in a mask": {[]formattest.Msg{ids, constant("p", float32Type, 12, 4), wired("CumSum", []string{"i",
			"one"}, []string{"s"}), wired("Gather", []string{"p", "s"}, []string{"y"})}, 0, false, false, "1 10 10"},
		"one row of positions": {[]formattest.Msg{ids, constant("p", float32Type, 1, 4), wired("Shape", []string{"i"},
			[]string{"s"}), wired("Gather", []string{"p", "s"}, []string{"y"})}, 0, false, false, "1 1 1"},
		"an image": {[]formattest.Msg{image, kernel, conv}, 0, false, true, "112 224 256"},
		"an image of normalized pixels": {[]formattest.Msg{image, kernel, wired("Sub", []string{"i", "mean"},
			[]string{"a"}), wired("Conv", []string{"a", "k"}, []string{"y"})}, 0, false, true, "112 224 256"},
		"features, no image":      {[]formattest.Msg{input(float32Type, 0, 8, 0, 0), constant("k", float32Type, 8, 8, 3, 3), conv}, 0, false, false, "112 224 256"},
		"open channels":           {[]formattest.Msg{input(float32Type, 0, 0, 0, 0), kernel, conv}, 0, false, false, "112 224 256"},
		"as much as windows need": {[]formattest.Msg{image, constant("k", float32Type, 8, 3, 240, 240), wired("Conv", []string{"i", "k"}, []string{"y"})}, 0, false, true, "240 240 272"},
		"the size that the weights need": {[]formattest.Msg{image, kernel, conv, wired("Flatten", []string{"c"}, []string{"f"}),
			constant("w", float32Type, 8*15*15, 10), wired("MatMul", []string{"f", "w"}, []string{"y"})}, 0, false, true, "only 32"},
		"weights that no size fits": {[]formattest.Msg{image, kernel, conv, wired("Flatten", []string{"c"}, []string{"f"}),
			constant("w", float32Type, 7, 10), wired("MatMul", []string{"f", "w"}, []string{"y"})}, 0, false, true, ""},
		"positions that are added": {[]formattest.Msg{input(float32Type, 0, 0, 4), constant("p", float32Type, 1, 40, 4), wired("Add", []string{"i", "p"}, []string{"a"})}, 0, false, false, "only 40"},
		"a recurrent network":      {[]formattest.Msg{input(float32Type, 0, 0, 4), wired("LSTM", []string{"i"}, []string{"y"})}, 0, false, false, "first 2 16 64"},
		"a recurrent network, batch first": {[]formattest.Msg{input(float32Type, 0, 0, 4), wired("Transpose", []string{"i"}, []string{"t"}, numbers("perm", 1, 0, 2)),
			wired("LSTM", []string{"t"}, []string{"y"})}, 0, false, false, "1 16 64"},
		"a recurrent network, turned twice": {[]formattest.Msg{input(float32Type, 0, 0, 4), wired("Transpose", []string{"i"}, []string{"t"}, numbers("perm", 1, 0, 2)),
			wired("Transpose", []string{"t"}, []string{"u"}, numbers("perm", 1, 0, 2)), wired("LSTM", []string{"u"}, []string{"y"})},
			0, false, false, "first 2 16 64"},
		"sound": {[]formattest.Msg{input(float32Type, 0, 1, 0), constant("k", float32Type, 8, 1, 10),
			wired("Conv", []string{"i", "k"}, []string{"y"}, numbers("strides", 5))}, 0, false, false, "515 1025 1060"},
		"strides of nothing":       {[]formattest.Msg{image, kernel, wired("Conv", []string{"i", "k"}, []string{"y"}, numbers("strides", 0, 0))}, 0, false, true, ""},
		"strides without an end":   {[]formattest.Msg{image, kernel, wired("Conv", []string{"i", "k"}, []string{"y"}, numbers("strides", 1<<62, 1<<62))}, 0, false, false, "1 16 64"},
		"a reshape to nothing":     {[]formattest.Msg{image, kernel, conv, constant("to", int64Type, 0), wired("Reshape", []string{"c", "to"}, []string{"y"})}, 0, false, true, "112 224 256"},
		"nodes in the wrong order": {[]formattest.Msg{ids, table, wired("Gather", []string{"table", "a"}, []string{"y"}), wired("Cast", []string{"i"}, []string{"a"})}, 0, false, false, "1 16 64"},
		"a node that feeds itself": {[]formattest.Msg{ids, wired("Cast", []string{"a", "i"}, []string{"a"}), wired("Add", []string{"a", "a"}, []string{"i"})}, 0, false, false, "1 16 64"},
		"names that are left out":  {[]formattest.Msg{ids, wired("Gather", []string{"", "i"}, []string{""}), wired("Conv", nil, nil), wired("Slice", []string{"i"}, nil)}, 0, false, false, "1 16 64"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, err := read(t, formattest.ModelOf(formattest.GraphOf(c.parts...)))
			if err != nil {
				t.Fatal(err)
			}
			got := m.Uses()["i"]
			if got.Rows != c.rows || got.Mask != c.mask || got.Image != c.image {
				t.Errorf("rows %d, mask %t, image %t; want %d, %t, %t", got.Rows, got.Mask, got.Image, c.rows, c.mask, c.image)
			}
			if sizes := sizesText(got.Sizes); sizes != c.sizes {
				t.Errorf("sizes %q (%+v), want %q", sizes, got.Sizes, c.sizes)
			}
		})
	}
}

// Where images come without channels, or with channels last, height and width have the same sizes.
func TestUsesOfOtherLayouts(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		input, kernel formattest.Msg
		node          formattest.Msg
	}{
		"no channels":   {input(float32Type, 0, 0, 0), constant("k", float32Type, 8, 1, 3, 3), wired("Unsqueeze", []string{"i", "one"}, []string{"a"})},
		"channels last": {input(float32Type, 0, 0, 0, 3), constant("k", float32Type, 8, 3, 3, 3), wired("Transpose", []string{"i"}, []string{"a"}, numbers("perm", 0, 3, 1, 2))},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, err := read(t, formattest.ModelOf(formattest.GraphOf(c.input, c.kernel, c.node, wired("Conv", []string{"a", "k"}, []string{"y"}))))
			if err != nil {
				t.Fatal(err)
			}
			got := m.Uses()["i"].Sizes
			if got[1] != got[2] || got[1].Opt < 3 {
				t.Errorf("height %+v, width %+v; want the same, of at least the window", got[1], got[2])
			}
		})
	}
}

func sizesText(all map[int]onnx.Sizes) string {
	for axis := 4; axis >= 0; axis-- {
		switch s, ok := all[axis]; {
		case ok && axis == 0:
			return fmt.Sprint("first ", s.Min, " ", s.Opt, " ", s.Max)
		case ok && s.Min == s.Max && s.Max > 1:
			return fmt.Sprint("only ", s.Max)
		case ok:
			return fmt.Sprint(s.Min, " ", s.Opt, " ", s.Max)
		}
	}
	return ""
}

// A graph that is too large to look at is read all the same, and says nothing.
func TestUsesOfLargeGraphs(t *testing.T) {
	t.Parallel()
	g := append(input(int64Type, 0, 0), constant("table", float32Type, 7, 4)...)
	g = append(g, wired("Gather", []string{"table", "i"}, []string{"y"})...)
	for n := range 1000 {
		g = append(g, wired("Relu", []string{fmt.Sprint("a", n)}, []string{fmt.Sprint("a", n+1)})...)
	}
	data := formattest.ModelOf(formattest.GraphOf(g))
	for memory, want := range map[int64]int64{1 << 20: 7, 1 << 18: 0} {
		m, err := onnx.Read(bytes.NewReader(data), int64(len(data)), bound.Limits{MaxMemory: memory})
		if err != nil {
			t.Fatalf("%d bytes of memory: %v", memory, err)
		}
		if got := m.Uses()["i"].Rows; got != want {
			t.Errorf("%d bytes of memory: %d rows, want %d", memory, got, want)
		}
	}
}

// checkUses checks that what a model says about its inputs makes sense, whatever is in it.
func checkUses(t *testing.T, m *onnx.Model) {
	t.Helper()
	for name, use := range m.Uses() {
		if use.Rows < 0 || use.Rows > 0 && use.Mask {
			t.Errorf("%s: %+v", name, use)
		}
		for axis, s := range use.Sizes {
			if s.Min < 1 || s.Opt < s.Min || s.Max < s.Opt || s.Why == "" {
				t.Errorf("%s, axis %d: sizes %+v", name, axis, s)
			}
		}
	}
}
