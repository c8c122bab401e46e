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
		"packed":             {nodes("MatMulNBits"), format.Quantized{Form: "QOperator", Nodes: 1}},
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
