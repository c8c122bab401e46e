package onnx

import (
	"fmt"
	"strings"

	"mlpromote.dev/mlpromote/registry"
)

// How ONNX models represent quantization.
const (
	FormQDQ       = "QDQ"       // operators between QuantizeLinear and DequantizeLinear
	FormQOperator = "QOperator" // operators on integers, with their own scales
)

// Quantized describes the quantization of a model. The zero Quantized means not quantized.
type Quantized struct {
	Form  string // FormQDQ or FormQOperator
	Nodes int    // number of graph nodes that quantize, dequantize or compute with integers
	// Bits of the smallest weights: 8 or 4. It is 0 if the graph alone does not show it,
	// because weights are packed in a tensor of bytes.
	Bits int
}

// Quantized finds out from the operators and tensors of the model whether it was quantized,
// during or after training.
func (m *Model) Quantized() Quantized {
	q := Quantized{}
	pairs, packed := 0, 0
	for op, n := range m.Ops {
		name := op[strings.LastIndexByte(op, '.')+1:] // without its domain, such as com.microsoft
		switch {
		case name == "QuantizeLinear" || name == "DequantizeLinear":
			pairs += n
		case name == "MatMulNBits" || name == "GatherBlockQuantized":
			packed += n
		case !integerOperator(name):
			continue
		}
		q.Nodes += n
	}
	if q.Nodes == 0 {
		return q
	}
	q.Form, q.Bits = FormQOperator, 8
	if 2*pairs > q.Nodes {
		q.Form = FormQDQ
	}
	switch {
	case m.Tensors["int4"]+m.Tensors["uint4"] > 0:
		q.Bits = 4
	case packed > 0:
		q.Bits = 0
	}
	return q
}

// integerOperator reports whether an operator of ONNX or of ONNX Runtime computes with
// quantized numbers.
func integerOperator(name string) bool {
	switch name {
	case "ConvInteger", "MatMulInteger", "MatMulIntegerToFloat", "DynamicQuantizeLinear",
		"DynamicQuantizeMatMul", "DynamicQuantizeLSTM", "QGemm", "QAttention":
		return true
	}
	return strings.HasPrefix(name, "QLinear") || strings.HasPrefix(name, "QEmbed") || strings.HasPrefix(name, "QOrdered")
}

// String describes it in messages: "QDQ, 12 nodes".
func (q Quantized) String() string {
	if q.Nodes == 0 {
		return "not quantized"
	}
	return fmt.Sprintf("%s, %s", q.Form, registry.Count(q.Nodes, "node"))
}
