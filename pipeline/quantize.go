package pipeline

import (
	"slices"

	"mlpromote.dev/mlpromote/pipeline/spec"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/format"
)

// The quantizer's words for the methods of a spec.
const (
	methodStatic  = "static-int8"
	methodDynamic = "dynamic-int8"
	methodWeights = "weights-int4"
	methodFP16    = "fp16"
)

// quantizeOptions are the driver's words for what the spec says, and nothing for what it
// leaves out.
func quantizeOptions(q *spec.Quantize) map[string]any {
	if q == nil || q.Method == spec.MethodNone {
		return nil
	}
	options := map[string]any{"method": map[string]string{
		spec.MethodStatic: methodStatic, spec.MethodDynamic: methodDynamic,
		spec.MethodWeights: methodWeights, spec.MethodFP16: methodFP16,
	}[q.Method]}
	set := func(said bool, name string, value any) {
		if said {
			options[name] = value
		}
	}
	set(q.Observer != "", "observer", q.Observer)
	set(q.Percentile != 0, "percentile", 100*float64(q.Percentile))
	set(q.Format != "", "format", q.Format)
	set(q.Method == spec.MethodStatic || q.Method == spec.MethodDynamic, "per_channel", q.PerChannel)
	set(q.ReduceRange, "reduce_range", true)
	set(q.BlockSize != 0, "block_size", q.BlockSize)
	set(q.Asymmetric, "symmetric", false)
	set(len(q.Exclude) > 0, "exclude_nodes", q.Exclude)
	set(len(q.Operators) > 0, "op_types", q.Operators)
	if q.Tolerance != nil {
		options["rtol"], options["atol"] = q.Tolerance.RTol, q.Tolerance.ATol
	}
	return options
}

// checkQuantized wants variants to be what the source is: one that is quantized already
// passes through and is quantized no second time, one that is not has to be.
func checkQuantized(s *spec.Spec, m *format.Model) error {
	found := m.Quantized()
	for _, v := range s.Variants {
		asIs := v.Quantize != nil && v.Quantize.Method == spec.MethodNone
		switch {
		case found.Nodes == 0 && !asIs:
		case found.Nodes == 0:
			return registry.Errorf(registry.CodeInvalid, "%s: variant %s is to stay as it is, and %s is not quantized: name a method, such as quantize: {method: static}", s.File, v.Name, s.Source.Path.Written)
		case !asIs && v.Quantize == nil:
			return registry.Errorf(registry.CodeInvalid, "%s: variant %s: %s is already quantized (%s), so nothing makes it %s: write %s", s.File, v.Name, s.Source.Path.Written, found, v.Precision, asItIs(found))
		case !asIs:
			return registry.Errorf(registry.CodeInvalid, "%s: variant %s: %s is already quantized (%s) and is not quantized again: write %s, or start from the model as it was", s.File, v.Name, s.Source.Path.Written, found, asItIs(found))
		case found.Bits != 0 && v.Precision != precisionOf(found):
			return registry.Errorf(registry.CodeInvalid, "%s: variant %s: %s is quantized (%s) to %s: name the variant so", s.File, v.Name, s.Source.Path.Written, found, precisionOf(found))
		}
	}
	return nil
}

// quantizedSource says of the source that it is quantized, if it is, and its precision.
func quantizedSource(s *spec.Spec, m *format.Model) (said, precision string) {
	if q := m.Quantized(); q.Nodes > 0 {
		return q.String(), s.Variants[0].Precision
	}
	return "", validators.PrecisionFP32
}

// asItIs is the variant of a source that is quantized, as a spec says it.
func asItIs(q format.Quantized) string {
	return "variants: [{name: " + precisionOf(q) + ", quantize: {method: none}}]"
}

// precisionOf is that of a model whose weights were made smaller.
func precisionOf(q format.Quantized) string {
	if q.Bits == 8 {
		return validators.PrecisionInt8
	}
	return validators.PrecisionInt4
}

// quantizeDefaults are the options of a method that the spec may leave out.
func quantizeDefaults(requested RequestedEngine) map[string]any {
	options := make(map[string]any)
	switch requested.Quantize["method"] {
	case methodFP16, methodWeights:
		return options
	case methodStatic:
		options["observer"] = spec.ObserverMinMax
	}
	options["reduce_range"] = !hasVNNI(requested.Target)
	return options
}

// hasVNNI reports whether every machine of the target multiplies int8 without
// saturating. Where it does not, weights lose a bit, so that sums of two products of
// uint8 and int8 fit 16 bits.
func hasVNNI(t registry.Target) bool {
	return slices.Contains(t.CPU.Features, "avx512_vnni") || slices.Contains(t.CPU.Features, "avx_vnni")
}

// forQuantizer is what a quantizer reads: the model, and the calibration where its
// method takes something from it.
func (in Inputs) forQuantizer(options map[string]any) []toolchain.Input {
	_, tolerant := options["atol"]
	if options["method"] != methodStatic && !tolerant {
		return in.Model
	}
	return slices.Concat(in.Model, in.Calibration.files)
}
