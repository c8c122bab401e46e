package onnx

import (
	"encoding/binary"
	"math"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"

	"mlpromote.dev/mlpromote/validators/format/bound"
	"mlpromote.dev/mlpromote/validators/format/protobuf"
)

// flow is how the values of the main graph depend on each other: what [Model.Uses] is found from.
// It is kept while it is small. A graph that is larger than that, or malformed, has none, and no
// file is refused for it.
type flow struct {
	left      int64            // bytes that it may still take; below 0 it is given up
	ids       map[string]int32 // of values, by name
	nodes     []flowNode       // as in the file, which ONNX wants in the order of computation
	constants map[int32]constant
}

// flowNode is a node of the main graph.
type flowNode struct {
	op      string             // with its domain, unless that is the default one
	in, out []int32            // values; noValue where an input or output is left out
	numbers map[string][]int64 // attributes that are whole numbers
	autoPad string
	value   *constant // of Constant
	odd     bool      // it has numbers that no runtime takes
}

// constant is a tensor of the file.
type constant struct {
	dims   []int64
	values []float64 // of a small tensor of int64 or float32; nil for any other
}

const (
	noValue = int32(-1)
	// flowShare is how much of the memory limit a flow may take: one part of so many.
	flowShare = 4
	// maxFlowRank bounds the constants and attributes that are kept.
	maxFlowRank = 8
	// maxFlowNumber bounds sizes and attributes, so that none overflows where they are computed with.
	maxFlowNumber = 1 << 24
	// maxValueBytes is the size of the tensors whose values are kept.
	maxValueBytes = 8 * maxFlowRank
)

func newFlow(lim bound.Limits) *flow {
	return &flow{left: lim.MaxMemory / flowShare, ids: map[string]int32{}, constants: map[int32]constant{}}
}

// keep counts n bytes with the overhead of a map or slice, and reports whether there is room.
func (f *flow) keep(n int) bool {
	const overhead = 64
	return f.charge(n + overhead)
}

// charge counts n bytes, and reports whether there is room.
func (f *flow) charge(n int) bool {
	if f.left -= int64(n); f.left < 0 {
		f.ids, f.nodes, f.constants = nil, nil, nil
	}
	return f.left >= 0
}

// id gives the number of a value. It is noValue for an input that is left out.
func (f *flow) id(name string) int32 {
	if name == "" || f.left < 0 {
		return noValue
	}
	if id, ok := f.ids[name]; ok {
		return id
	}
	if !f.keep(len(name)) {
		return noValue
	}
	id := int32(len(f.ids))
	f.ids[name] = id
	return id
}

// add adds a node that was read whole.
func (f *flow) add(n flowNode, domain, op string) {
	if domain != DefaultDomain {
		op = domain + "." + op
	}
	if n.op = op; n.odd {
		n.op = "?"
	}
	if !f.keep(len(op) + 96*len(n.numbers)) {
		return
	}
	if op == "Constant" && n.value != nil && len(n.out) == 1 && n.out[0] != noValue {
		f.constants[n.out[0]] = *n.value
	}
	f.nodes = append(f.nodes, n)
}

// constant adds a named tensor of the graph.
func (f *flow) constant(t tensor) {
	if id := f.id(t.name); id != noValue && f.keep(8*(len(t.dims)+maxFlowRank)) {
		f.constants[id] = t.constant()
	}
}

func (t tensor) constant() constant {
	c := constant{dims: append([]int64{}, t.dims...)}
	if len(c.dims) != t.rank || slices.ContainsFunc(c.dims, outOfRange) {
		return constant{} // of unknown shape
	}
	width := map[uint64]int{1: 4, 7: 8}[t.dtype] // float32 and int64
	if width == 0 || t.elements > maxFlowRank {
		return c
	}
	values := append([]float64{}, t.numbers...)
	for raw := t.raw; len(raw) >= width; raw = raw[width:] {
		if width == 8 {
			values = append(values, float64(int64(binary.LittleEndian.Uint64(raw))))
		} else {
			values = append(values, float64(math.Float32frombits(binary.LittleEndian.Uint32(raw))))
		}
	}
	if uint64(len(values)) == t.elements {
		c.values = values
	}
	return c
}

// small reads the elements of a small tensor, as far as a flow has use for them.
func (rd *reader) small(f protobuf.Field, t *tensor) error {
	switch {
	case f.Num == 9 && f.Type == protowire.BytesType && f.Span.Len() <= maxValueBytes:
		raw, err := rd.Read(f)
		t.raw = []byte(raw)
		return err
	case f.Num == 7 && len(t.numbers) <= maxFlowRank:
		for _, n := range rd.wholes(f) {
			t.numbers = append(t.numbers, float64(n))
		}
	}
	return nil
}

// wholes reads a repeated int64, packed or not: nothing where there are more than a flow keeps, or
// where it is malformed, which whoever computes with it refuses.
func (rd *reader) wholes(f protobuf.Field) []int64 {
	if f.Type == protowire.VarintType {
		return []int64{int64(f.Val)}
	}
	if f.Type != protowire.BytesType || f.Span.Len() > 10*maxFlowRank {
		return nil
	}
	var all []int64
	for at := f.Span.Start; at < f.Span.End; {
		val, next, err := rd.Varint(at, f.Span, "a list of numbers")
		if err != nil {
			return nil
		}
		all, at = append(all, int64(val)), next
	}
	return all
}

// valueID reads the name of an input or output of a node.
func (rd *reader) valueID(f protobuf.Field) (int32, error) {
	if rd.flow.left < 0 || f.Span.Len() > bound.MaxName {
		return noValue, nil
	}
	name, err := rd.Read(f)
	return rd.flow.id(name), err
}

// outOfRange reports whether a size or attribute is too large to compute with.
func outOfRange(n int64) bool { return n > maxFlowNumber || n < -maxFlowNumber }

// flowAttributes are the attributes of nodes that a flow keeps.
var flowAttributes = map[string]bool{"axis": true, "axes": true, "perm": true, "strides": true, "kernel_shape": true, "pads": true,
	"dilations": true, "output_padding": true, "group": true, "transB": true, "ceil_mode": true, "layout": true, "gather_axis": true}

// flowAttribute is an attribute while it is read.
type flowAttribute struct {
	name    string
	numbers []int64
	text    string
	tensor  *constant
	classes []string // names of classes, nil for other attributes
}

// keep adds an attribute to its node.
func (n *flowNode) keep(a flowAttribute) {
	switch {
	case a.name == "auto_pad":
		n.autoPad = a.text
	case a.name == "value" && a.tensor != nil:
		n.value = a.tensor
	case flowAttributes[a.name] && len(a.numbers) > 0:
		n.odd = n.odd || len(a.numbers) > maxFlowRank || slices.ContainsFunc(a.numbers, outOfRange)
		if n.numbers == nil {
			n.numbers = map[string][]int64{}
		}
		n.numbers[a.name] = a.numbers
	}
}
