package run

import (
	"slices"

	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/format/onnx"
)

// UnnamedBatch is what leading dimensions without a name are called if they are one.
const UnnamedBatch = "batch"

// WithBatch gives the leading dimensions of a graph that have no name one symbol in iface, the interface of that graph or a part of it. unnamed
// lists the symbols that it replaces; it is nil if there are none, or if the graph excludes that they are one: inputs lead with several
// names or with fixed sizes. Whether the model computes each row of such a batch by itself, only a run shows.
func WithBatch(m *onnx.Model, iface validators.Interface) (_ validators.Interface, unnamed []string) {
	symbol, others := "", make(map[string]bool)
	for i, v := range slices.Concat(m.Inputs, m.Outputs) {
		if v.Shape == nil && i >= len(m.Inputs) {
			continue // an output that gets its shape later
		}
		if len(v.Shape) == 0 || v.Shape[0].Known {
			return iface, nil
		}
		switch first := v.Shape[0].Param; {
		case first == "":
			unnamed = append(unnamed, dimOf(v.Shape[0], v.Name, 0).Symbol)
		case symbol != "" && first != symbol:
			return iface, nil
		default:
			symbol = first
		}
		for _, d := range v.Shape[1:] {
			others[d.Param] = true
		}
	}
	if symbol == "" {
		symbol = UnnamedBatch
	}
	if len(unnamed) == 0 || others[symbol] {
		return iface, nil
	}
	iface.Inputs, iface.Outputs = renamed(iface.Inputs, unnamed, symbol), renamed(iface.Outputs, unnamed, symbol)
	return iface, unnamed
}

// renamed replaces symbols in front of tensors.
func renamed(tensors []validators.TensorInfo, from []string, to string) []validators.TensorInfo {
	tensors = slices.Clone(tensors)
	for i, t := range tensors {
		if len(t.Shape) > 0 && slices.Contains(from, t.Shape[0].Symbol) {
			tensors[i].Shape = slices.Clone(t.Shape)
			tensors[i].Shape[0].Symbol = to
		}
	}
	return tensors
}
