package onnx

import (
	"fmt"
	"io"
	"maps"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators/format/bound"
	"mlpromote.dev/mlpromote/validators/format/protobuf"
)

// CheckScales checks the scales and zero points of a quantized model, such as one that was trained with quantization. Runtimes
// compute with whatever a file has, and many of these mistakes show as wrong numbers only. It looks at the constants of
// QuantizeLinear, DequantizeLinear, QLinearConv and QLinearMatMul in the main graph:
//
//   - A scale is finite and above 0. A zero point has the integer type of the tensor that it is added to, and a value of that type; that
//     of int32 is 0.
//   - As many zero points as scales, and along their axis as many as the scaled tensor has indices, or blocks.
//   - DequantizeLinear directly behind QuantizeLinear has the same scale, zero point and axis.
//   - The scale of an int32 bias of Conv, ConvTranspose and Gemm is the product of the scales of input and weights.
//
// external opens external data by its location, with its size; nil for a model without any. Errors: CodeInvalid, which names the
// node, or an error of r or external.
func CheckScales(r io.ReaderAt, size int64, lim bound.Limits, external func(location string) (io.ReaderAt, int64, error)) error {
	lim = lim.WithDefaults()
	q := scaleReader{Scanner: protobuf.NewScanner(r, size, lim),
		constants: map[string]*scaleTensor{}, values: map[string]protobuf.Span{}, makers: map[string]*scaleNode{}, external: external}
	err := q.graphs(func(sp protobuf.Span) error { return q.Each(sp, "GraphProto", q.node) })
	if err == nil {
		err = q.graphs(func(sp protobuf.Span) error { return q.Each(sp, "GraphProto", q.initializer) })
	}
	for _, name := range slices.Sorted(maps.Keys(q.values)) {
		if t, wanted := q.constants[name]; wanted && err == nil {
			err = q.tensor(q.values[name], t)
		}
	}
	if err != nil {
		return err
	}
	for _, n := range q.nodes {
		if err := q.check(n); err != nil {
			return registry.Errorf(registry.CodeInvalid, "%s: %w", n, err)
		}
	}
	return nil
}

// scaleReader reads the nodes that quantize, and then the constants that they name.
type scaleReader struct {
	*protobuf.Scanner
	nodes     []*scaleNode
	constants map[string]*scaleTensor  // that nodes read; not set while they are not found
	values    map[string]protobuf.Span // of Constant nodes
	makers    map[string]*scaleNode    // by output
	external  func(string) (io.ReaderAt, int64, error)
}

// scaleNode is a node that quantizes, or that takes quantized numbers.
type scaleNode struct {
	name, op    string
	in, out     []string
	axis, block int64
}

// String names the node in messages.
func (n *scaleNode) String() string {
	if n.name == "" && len(n.out) > 0 {
		return fmt.Sprintf("%s that makes %q", n.op, registry.PlainText(n.out[0]))
	}
	return fmt.Sprintf("%s %q", n.op, registry.PlainText(n.name))
}

// input is the name of an input; empty for one that is left out.
func (n *scaleNode) input(i int) string {
	if i >= len(n.in) {
		return ""
	}
	return n.in[i]
}

// scaledInputs says where operators have what is quantized, its scale and its zero point.
var scaledInputs = map[string][][3]int{
	"QuantizeLinear": {{0, 1, 2}}, "DequantizeLinear": {{0, 1, 2}},
	"QLinearConv": {{0, 1, 2}, {3, 4, 5}, {-1, 6, 7}}, "QLinearMatMul": {{0, 1, 2}, {3, 4, 5}, {-1, 6, 7}},
	"Conv": nil, "ConvTranspose": nil, "Gemm": nil,
}

func (q *scaleReader) graphs(visit func(protobuf.Span) error) error {
	return q.Each(q.All(), "ModelProto", func(f protobuf.Field) error {
		if f.Num == 7 && f.Type == protowire.BytesType {
			return visit(f.Span)
		}
		return nil
	})
}

// node keeps a node of the main graph, if it is of use.
func (q *scaleReader) node(f protobuf.Field) error {
	if f.Num != 1 || f.Type != protowire.BytesType {
		return nil
	}
	n, domain, value := scaleNode{axis: 1}, "", protobuf.Span{}
	err := q.Each(f.Span, "NodeProto", func(g protobuf.Field) error {
		if g.Type != protowire.BytesType {
			return nil
		}
		if g.Num == 5 {
			return q.attribute(g, &n, &value)
		}
		text, err := q.Text(g)
		switch g.Num {
		case 1:
			n.in = append(n.in, text)
		case 2:
			n.out = append(n.out, text)
		case 3:
			n.name = text
		case 4:
			n.op = text
		case 7:
			domain = text
		}
		return err
	})
	if err != nil || !isStandardDomain(canonicalDomain(domain)) {
		return err
	}
	if n.op == "Constant" && len(n.out) == 1 && value.Len() > 0 {
		q.values[n.out[0]] = value
		return q.Keep(f.At, int64(len(n.out[0])))
	}
	return q.scaled(f, &n)
}

// scaled keeps a node of which inputs are scales or are scaled.
func (q *scaleReader) scaled(f protobuf.Field, n *scaleNode) error {
	groups, known := scaledInputs[n.op]
	if !known {
		return nil
	}
	for _, group := range groups {
		for _, i := range group {
			if i >= 0 && n.input(i) != "" {
				if q.constants[n.in[i]] == nil {
					q.constants[n.in[i]] = &scaleTensor{}
				}
				q.constants[n.in[i]].valued = q.constants[n.in[i]].valued || i != group[0]
			}
		}
	}
	q.nodes = append(q.nodes, n)
	for _, out := range n.out {
		q.makers[out] = n
	}
	return q.Keep(f.At, 2*f.Span.Len())
}

// attribute reads axis and block size of a node, and where the value of a Constant is.
func (q *scaleReader) attribute(f protobuf.Field, n *scaleNode, value *protobuf.Span) error {
	name, number := "", int64(0)
	var tensor protobuf.Span
	err := q.Each(f.Span, "AttributeProto", func(g protobuf.Field) (err error) {
		switch {
		case g.Num == 1 && g.Type == protowire.BytesType:
			name, err = q.Text(g)
		case g.Num == 3 && g.Type == protowire.VarintType:
			number = int64(g.Val)
		case g.Num == 5 && g.Type == protowire.BytesType:
			tensor = g.Span
		}
		return err
	})
	switch name {
	case "axis":
		n.axis = number
	case "block_size":
		n.block = number
	case "value":
		*value = tensor
	}
	return err
}

// initializer reads a tensor of the graph, if a node reads it.
func (q *scaleReader) initializer(f protobuf.Field) error {
	if f.Num != 5 || f.Type != protowire.BytesType {
		return nil
	}
	name := ""
	err := q.Each(f.Span, "TensorProto", func(g protobuf.Field) (err error) {
		if g.Num == 8 && g.Type == protowire.BytesType {
			name, err = q.Text(g)
		}
		return err
	})
	if t, wanted := q.constants[name]; wanted && err == nil {
		return q.tensor(f.Span, t)
	}
	return err
}
