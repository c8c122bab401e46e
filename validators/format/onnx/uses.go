package onnx

import (
	"slices"
	"strings"
)

// Use describes the use of an input in the graph, as far as its nodes tell: the values and sizes
// that it can take. The zero Use has no facts.
type Use struct {
	// Rows is the number of rows of the smallest table that the values select from, as token ids
	// do from an embedding: they must be from 0 to Rows-1. It is 0 if they select from none.
	Rows int64
	// Mask is set for an input that is named a mask, or has whole numbers that are compared.
	Mask bool
	// Image is set for an input of 1, 3 or 4 channels that convolutions of two dimensions read.
	Image bool
	// Quantized is set for an input that the graph dequantizes.
	Quantized bool
	// Sizes proposes sizes for open dimensions, by axis.
	Sizes map[int]Sizes
}

// maxUses bounds the inputs that are looked at.
const maxUses = 256

// Uses returns the use of each input in the main graph. Nodes in subgraphs and functions,
// and graphs of more than about 100,000 nodes, are not looked at.
func (m *Model) Uses() map[string]Use {
	uses := make(map[string]Use, len(m.Inputs))
	if m.flow == nil || m.flow.left < 0 {
		return uses
	}
	t := trials{flow: m.flow, work: maxTrialWork}
	inputs := m.Inputs[:min(len(m.Inputs), maxUses)]
	all, positions := make([]found, len(inputs)), int64(0)
	for i, input := range inputs {
		if id, ok := m.flow.ids[input.Name]; ok {
			all[i] = m.flow.follow(id)
			positions = least(positions, all[i].positions)
		}
	}
	for i, input := range inputs {
		id, ok := m.flow.ids[input.Name]
		if !ok {
			continue
		}
		f := all[i]
		f.positions = positions // a mask is as long as what it masks
		use := Use{Rows: f.rows, Quantized: f.quantized}
		float := strings.HasPrefix(input.DType, "float") || input.DType == "bfloat16"
		use.Mask = f.rows == 0 && (strings.Contains(strings.ToLower(input.Name), "mask") || f.compared && !float)
		use.Image = f.windows == 2 && !use.Mask && f.rows == 0 && (float || input.DType == "uint8") && hasChannels(input.Shape)
		use.Sizes = t.sizes(input, id, f)
		uses[input.Name] = use
	}
	return uses
}

// hasChannels reports whether a shape is that of images, channels before or after the pixels.
func hasChannels(shape []Dim) bool {
	is := func(d Dim) bool { return d.Known && (d.Value == 1 || d.Value == 3 || d.Value == 4) }
	return len(shape) == 4 && (is(shape[1]) || is(shape[3]))
}

// What a value has of the input that is followed.
const (
	sameValues  = 1 << iota // its values, in another order or shape
	itsPixels               // its values after arithmetic on each
	itsData                 // something computed from them
	itsSize                 // its size, or numbers computed from that
	itsPosition             // positions counted in it
	itsTurned               // another dimension first, as where the batch of a recurrent network comes first
)

// found is what following an input found.
type found struct {
	rows      int64
	compared  bool
	quantized bool
	windows   int   // axes of the windows of convolutions that read it: 2 for images; 0 for none
	channels  int64 // that the first of them reads
	recurrent bool  // its first dimension is the sequence of a recurrent node
	positions int64 // rows of the smallest table of positions; 0 for none
}

// follow goes through the nodes in their order once.
func (f *flow) follow(input int32) found {
	var got found
	has := make([]uint8, len(f.ids))
	has[input] = sameValues | itsPixels | itsData
	for _, n := range f.nodes {
		at := func(i int) uint8 {
			if i < len(n.in) && n.in[i] != noValue {
				return has[n.in[i]]
			}
			return 0
		}
		var all uint8
		for i := range n.in {
			all |= at(i)
		}
		if all == 0 {
			continue
		}
		got.look(f, n, at, all)
		passes := passed(n, at, all)
		for _, out := range n.out {
			if out != noValue {
				has[out] |= passes
			}
		}
	}
	return got
}

// passed gives what the outputs of a node have of the input.
func passed(n flowNode, at func(int) uint8, all uint8) uint8 {
	out := all & itsData
	switch n.op {
	case "Shape", "Size":
		if all&itsData != 0 {
			return itsSize
		}
		return 0
	case "CumSum":
		if at(0)&itsData != 0 {
			return out | itsPosition
		}
		return out
	case "Gather", "Reshape", "Expand", "Tile", "Slice", "Pad", "Resize", "Squeeze", "Unsqueeze":
		return out | at(0) // the other inputs are numbers and sizes
	case "Transpose":
		if n.number("perm", -1) != 0 { // without perm, all dimensions are reversed
			return out | all ^ itsTurned
		}
		return out | all
	case "Identity", "Cast", "CastLike", "Flatten", "Split", "Concat", "Where", "Dropout":
		return out | all
	case "Add", "Sub", "Mul", "Div", "Neg", "Clip", "Relu", "Pow", "Sqrt", "BatchNormalization", "InstanceNormalization",
		"QuantizeLinear", "DequantizeLinear", "Upsample":
		return out | all&^sameValues
	}
	return out | all&itsSize
}

// look notes what a node says about the input.
func (got *found) look(f *flow, n flowNode, at func(int) uint8, all uint8) {
	switch n.op {
	case "Gather":
		got.selects(f.dims(n, 0), n.number("axis", 0), at(1))
	case "com.microsoft.GatherBlockQuantized":
		got.selects(f.dims(n, 0), n.number("gather_axis", 0), at(1))
	case "com.microsoft.EmbedLayerNormalization":
		got.selects(f.dims(n, 2), 0, at(0))
		got.selects(f.dims(n, 4), 0, at(1))
		got.selects(f.dims(n, 3), 0, itsSize*(at(0)&sameValues))
	case "Slice":
		if (at(1)|at(2))&itsSize != 0 {
			got.cut(f.dims(n, 0))
		}
	case "Where":
		got.compared = got.compared || at(0)&sameValues != 0
	case "Conv", "ConvInteger", "QLinearConv":
		if at(0)&itsPixels != 0 {
			got.convolves(f, n)
		}
	case "DequantizeLinear":
		got.quantized = got.quantized || at(0)&sameValues != 0
	case "LSTM", "GRU", "RNN":
		got.recurrent = got.recurrent || at(0)&(sameValues|itsTurned) == sameValues && n.number("layout", 0) == 0
	default:
		got.compared = got.compared || all&sameValues != 0 && slices.Contains(comparisons, n.op)
	}
}

// comparisons are the operators that compare numbers, or combine what was compared.
var comparisons = []string{"Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Not", "And", "Or", "Xor"}

// convolves notes the first convolution that reads the input.
func (got *found) convolves(f *flow, n flowNode) {
	weights := f.dims(n, 1)
	if n.op == "QLinearConv" {
		weights = f.dims(n, 3)
	}
	if len(weights) > 2 && got.windows == 0 {
		got.windows, got.channels = len(weights)-2, weights[1]*n.number("group", 1)
	}
}

// selects notes that indices with what they have of the input select from an axis of a table.
func (got *found) selects(table []int64, axis int64, index uint8) {
	if axis < 0 {
		axis += int64(len(table))
	}
	if axis < 0 || axis >= int64(len(table)) || table[axis] < 1 {
		return
	}
	rows := table[axis]
	switch {
	case index&sameValues != 0:
		got.rows = least(got.rows, rows)
	case index&itsPosition != 0: // such positions start behind the number that pads, which is 1 at most
		got.positions = least(got.positions, max(rows-2, 1))
	case index&itsSize != 0 && len(table) > 1:
		got.positions = least(got.positions, rows)
	}
}

// cut notes that a table is cut to the size of the input: of numbers of positions, or of their
// embeddings.
func (got *found) cut(table []int64) {
	switch {
	case len(table) == 0:
	case len(table) > 2:
		got.positions = least(got.positions, table[len(table)-2])
	case len(table) == 2 && table[0] == 1:
		got.positions = least(got.positions, table[1])
	default:
		got.positions = least(got.positions, table[0])
	}
}

// least is the smaller of two bounds; 0 is none.
func least(a, b int64) int64 {
	if a == 0 || b > 0 && b < a {
		return b
	}
	return a
}

// dims is the shape of a constant input, nil for any other. Constants are seen through what keeps
// their shape.
func (f *flow) dims(n flowNode, at int) []int64 { return f.known(n, at).dims }

func (f *flow) known(n flowNode, at int) constant {
	if at >= len(n.in) || n.in[at] == noValue {
		return constant{}
	}
	return f.constants[n.in[at]]
}

// through makes the outputs of nodes on constants constants, where their shape stays.
func (f *flow) through() {
	for _, n := range f.nodes {
		if slices.Contains([]string{"Identity", "Cast", "DequantizeLinear"}, n.op) && len(n.in) > 0 && len(n.out) == 1 && n.out[0] != noValue {
			if c := f.known(n, 0); c.dims != nil {
				if _, taken := f.constants[n.out[0]]; !taken {
					f.constants[n.out[0]] = constant{dims: c.dims}
				}
			}
		}
	}
}

// number gives an attribute that is one whole number.
func (n flowNode) number(name string, otherwise int64) int64 {
	if all := n.numbers[name]; len(all) > 0 {
		return all[0]
	}
	return otherwise
}
