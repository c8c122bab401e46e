package ingest

import (
	"maps"
	"slices"

	"mlpromote.dev/mlpromote/pipeline/run"
	"mlpromote.dev/mlpromote/pipeline/spec"
	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/format/onnx"
)

// UnnamedBatch is a batch of an ONNX file that its graph does not name.
type UnnamedBatch struct {
	apart   validators.Interface // as the graph has it
	unnamed []string             // the symbols of leading dimensions there
}

// withBatch takes the unnamed leading dimensions of an ONNX file for one batch, unless the spec has sizes for one of them by its place.
func withBatch(s *spec.Spec, model *onnx.Model, iface validators.Interface) (_ validators.Interface, unnamed []string) {
	if s.Source.Format != spec.FormatONNX {
		return iface, nil
	}
	together, unnamed := run.WithBatch(model, iface)
	declared := s.Shapes.Dims()
	if slices.ContainsFunc(unnamed, func(symbol string) bool { _, ok := declared[symbol]; return ok }) {
		return iface, nil
	}
	return together, unnamed
}

// NoBatch takes the leading dimensions for separate ones again. Each keeps the sizes of the batch.
func (in *Inputs) NoBatch() {
	dims := maps.Clone(in.Interface.Dims)
	for side, tensors := range map[*[]validators.TensorInfo][]validators.TensorInfo{
		&in.Interface.Inputs: in.Batch.apart.Inputs, &in.Interface.Outputs: in.Batch.apart.Outputs,
	} {
		*side = slices.Clone(*side)
		for i, t := range tensors {
			if len(t.Shape) > 0 && slices.Contains(in.Batch.unnamed, t.Shape[0].Symbol) {
				dims[t.Shape[0].Symbol] = dims[(*side)[i].Shape[0].Symbol]
			}
			(*side)[i].Shape = t.Shape
		}
	}
	in.Interface.Dims = dims
	symbols := in.Interface.Symbols()
	maps.DeleteFunc(in.Interface.Dims, func(symbol string, _ validators.DimRange) bool { return !slices.Contains(symbols, symbol) })
	in.Batch = nil
}
