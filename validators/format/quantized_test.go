package format_test

import (
	"testing"

	"mlpromote.dev/mlpromote/validators/format"
)

func TestQuantized(t *testing.T) {
	t.Parallel()
	initializer := func(dtype int64) msg { return msg{}.sub(5, msg{}.num(1, 2).num(2, dtype).str(8, "w")) }
	nodes := func(ops ...string) msg {
		g := msg{}
		for _, op := range ops {
			g = g.sub(1, node(op))
		}
		return g
	}
	for name, c := range map[string]struct {
		graph msg
		want  format.Quantized
	}{
		"not at all":         {nodes("Conv", "Relu"), format.Quantized{}},
		"integers in inputs": {append(nodes("Gather"), initializer(3)...), format.Quantized{}},
		"pairs":              {append(nodes("QuantizeLinear", "DequantizeLinear", "Conv"), initializer(3)...), format.Quantized{Form: "QDQ", Nodes: 2, Bits: 8}},
		"4 bits":             {append(nodes("DequantizeLinear", "MatMul"), initializer(22)...), format.Quantized{Form: "QDQ", Nodes: 1, Bits: 4}},
		"operators":          {nodes("QuantizeLinear", "QLinearConv", "QLinearMatMul", "DequantizeLinear"), format.Quantized{Form: "QOperator", Nodes: 4, Bits: 8}},
		"dynamic":            {nodes("DynamicQuantizeLinear", "MatMulInteger", "Mul"), format.Quantized{Form: "QOperator", Nodes: 2, Bits: 8}},
		"packed":             {msg{}.sub(1, node("MatMulNBits").str(7, "com.microsoft")), format.Quantized{Form: "QOperator", Nodes: 1}},
	} {
		model, err := read(t, modelOf(graphOf(c.graph)))
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
		want format.Quantized
	}{
		"half in pairs":         {map[string]int{"ai.onnx.QuantizeLinear": 2, "com.microsoft.QLinearAdd": 2}, format.Quantized{Form: format.FormQOperator, Nodes: 4, Bits: 8}},
		"more than half":        {map[string]int{"ai.onnx.DequantizeLinear": 3, "com.microsoft.QLinearAdd": 2}, format.Quantized{Form: format.FormQDQ, Nodes: 5, Bits: 8}},
		"packed and in pairs":   {map[string]int{"ai.onnx.DequantizeLinear": 1, "com.microsoft.GatherBlockQuantized": 2}, format.Quantized{Form: format.FormQOperator, Nodes: 3}},
		"embeddings":            {map[string]int{"com.microsoft.QEmbedLayerNormalization": 1}, format.Quantized{Form: format.FormQOperator, Nodes: 1, Bits: 8}},
		"attention":             {map[string]int{"com.microsoft.QAttention": 1}, format.Quantized{Form: format.FormQOperator, Nodes: 1, Bits: 8}},
		"ordered":               {map[string]int{"com.microsoft.QOrderedGelu": 1}, format.Quantized{Form: format.FormQOperator, Nodes: 1, Bits: 8}},
		"a name like another's": {map[string]int{"ai.onnx.Quantize": 1}, format.Quantized{}},
	} {
		m := format.Model{Ops: c.ops}
		if got := m.Quantized(); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
	four := format.Model{Ops: map[string]int{"ai.onnx.DequantizeLinear": 1}, Tensors: map[string]int{"uint4": 1}}
	if got := four.Quantized(); got.Bits != 4 {
		t.Errorf("weights of uint4: %d bits, want 4", got.Bits)
	}
	if got := (format.Quantized{Form: format.FormQDQ, Nodes: 1}).String() + ", " + (format.Quantized{}).String(); got != "QDQ, 1 node, not quantized" {
		t.Errorf("written as %q", got)
	}
}
