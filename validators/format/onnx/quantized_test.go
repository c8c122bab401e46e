package onnx_test

import (
	"testing"

	"mlpromote.dev/mlpromote/validators/format/formattest"
	"mlpromote.dev/mlpromote/validators/format/onnx"
)

func TestQuantized(t *testing.T) {
	t.Parallel()
	initializer := func(dtype int64) formattest.Msg {
		return formattest.Msg{}.Sub(5, formattest.Msg{}.Num(1, 2).Num(2, dtype).Str(8, "w"))
	}
	nodes := func(ops ...string) formattest.Msg {
		g := formattest.Msg{}
		for _, op := range ops {
			g = g.Sub(1, formattest.Node(op))
		}
		return g
	}
	for name, c := range map[string]struct {
		graph formattest.Msg
		want  onnx.Quantized
	}{
		"not at all":         {nodes("Conv", "Relu"), onnx.Quantized{}},
		"integers in inputs": {append(nodes("Gather"), initializer(3)...), onnx.Quantized{}},
		"pairs":              {append(nodes("QuantizeLinear", "DequantizeLinear", "Conv"), initializer(3)...), onnx.Quantized{Form: "QDQ", Nodes: 2, Bits: 8}},
		"4 bits":             {append(nodes("DequantizeLinear", "MatMul"), initializer(22)...), onnx.Quantized{Form: "QDQ", Nodes: 1, Bits: 4}},
		"operators":          {nodes("QuantizeLinear", "QLinearConv", "QLinearMatMul", "DequantizeLinear"), onnx.Quantized{Form: "QOperator", Nodes: 4, Bits: 8}},
		"dynamic":            {nodes("DynamicQuantizeLinear", "MatMulInteger", "Mul"), onnx.Quantized{Form: "QOperator", Nodes: 2, Bits: 8}},
		"packed":             {formattest.Msg{}.Sub(1, formattest.Node("MatMulNBits").Str(7, "com.microsoft")), onnx.Quantized{Form: "QOperator", Nodes: 1}},
	} {
		model, err := read(t, formattest.ModelOf(formattest.GraphOf(c.graph)))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := model.Quantized(); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

// Half of the nodes in pairs is not most of them.
func TestQuantizedForms(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		ops  map[string]int
		want onnx.Quantized
	}{
		"half in pairs":         {map[string]int{"ai.onnx.QuantizeLinear": 2, "com.microsoft.QLinearAdd": 2}, onnx.Quantized{Form: onnx.FormQOperator, Nodes: 4, Bits: 8}},
		"more than half":        {map[string]int{"ai.onnx.DequantizeLinear": 3, "com.microsoft.QLinearAdd": 2}, onnx.Quantized{Form: onnx.FormQDQ, Nodes: 5, Bits: 8}},
		"packed and in pairs":   {map[string]int{"ai.onnx.DequantizeLinear": 1, "com.microsoft.GatherBlockQuantized": 2}, onnx.Quantized{Form: onnx.FormQOperator, Nodes: 3}},
		"embeddings":            {map[string]int{"com.microsoft.QEmbedLayerNormalization": 1}, onnx.Quantized{Form: onnx.FormQOperator, Nodes: 1, Bits: 8}},
		"attention":             {map[string]int{"com.microsoft.QAttention": 1}, onnx.Quantized{Form: onnx.FormQOperator, Nodes: 1, Bits: 8}},
		"ordered":               {map[string]int{"com.microsoft.QOrderedGelu": 1}, onnx.Quantized{Form: onnx.FormQOperator, Nodes: 1, Bits: 8}},
		"a name like another's": {map[string]int{"ai.onnx.Quantize": 1}, onnx.Quantized{}},
	} {
		m := onnx.Model{Ops: c.ops}
		if got := m.Quantized(); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
	four := onnx.Model{Ops: map[string]int{"ai.onnx.DequantizeLinear": 1}, Tensors: map[string]int{"uint4": 1}}
	if got := four.Quantized(); got.Bits != 4 {
		t.Errorf("weights of uint4: %d bits, want 4", got.Bits)
	}
	if got := (onnx.Quantized{Form: onnx.FormQDQ, Nodes: 1}).String() + ", " + (onnx.Quantized{}).String(); got != "QDQ, 1 node, not quantized" {
		t.Errorf("written as %q", got)
	}
}
