package ingest

import (
	"mlpromote.dev/mlpromote/pipeline/plan"
	"mlpromote.dev/mlpromote/pipeline/run"
	"mlpromote.dev/mlpromote/pipeline/spec"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/format/onnx"
)

// quantizer is the toolchain that does what a spec asks for; empty where nothing is
// quantized.
func quantizer(q *spec.Quantize) string {
	switch {
	case q == nil || q.Method == spec.MethodNone || q.Tool == spec.ToolTorchAO:
		return ""
	case q.Tool == spec.ToolNNCF:
		return spec.ToolNNCF
	}
	return run.OnnxRuntime
}

// quantizedInside is how the compiler of an engine quantizes it by itself; empty for an engine that something else quantizes, or nothing.
func quantizedInside(q *spec.Quantize) string {
	if q == nil || q.Tool != spec.ToolTorchAO {
		return ""
	}
	if q.Method == spec.MethodWeights {
		return plan.MethodWeights8
	}
	return plan.MethodDynamic
}

// quantizeOptions are the driver's words for what the spec says, and nothing for what it
// leaves out.
func quantizeOptions(q *spec.Quantize) map[string]any {
	if quantizer(q) == "" {
		return nil
	}
	options := map[string]any{"method": map[string]string{
		spec.MethodStatic: plan.MethodStatic, spec.MethodDynamic: plan.MethodDynamic,
		spec.MethodWeights: plan.MethodWeights, spec.MethodFP16: plan.MethodFP16,
	}[q.Method]}
	set := func(said bool, name string, value any) {
		if said {
			options[name] = value
		}
	}
	set(q.Bits == 8, "method", plan.MethodWeights8)
	set(q.Observer != "", "observer", q.Observer)
	set(q.Percentile != 0, "percentile", 100*float64(q.Percentile))
	set(q.Format != "", "format", q.Format)
	set(q.Tool != spec.ToolNNCF && (q.Method == spec.MethodStatic || q.Method == spec.MethodDynamic),
		"per_channel", q.PerChannel)
	set(q.ReduceRange != nil, "reduce_range", q.ReduceRange != nil && *q.ReduceRange)
	set(q.Preset != "", "preset", q.Preset)
	set(q.AccuracyAware, "accuracy_aware", true)
	set(q.Algorithm != "", "algorithm", q.Algorithm)
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
func checkQuantized(s *spec.Spec, m *onnx.Model) error {
	found := m.Quantized()
	for _, v := range s.Variants {
		if v.Model.Written != "" {
			continue // it is made from a model of its own
		}
		asIs := v.Quantize != nil && v.Quantize.Method == spec.MethodNone
		switch {
		case found.Nodes == 0 && !asIs:
		case len(v.Compress) > 0:
			return registry.Errorf(registry.CodeInvalid,
				"%s: variant %s: %s is already quantized (%s), and compression starts from weights in full precision: leave compress out, or start from the model as it was",
				s.File, v.Name, s.Source.Path.Written, found)
		case found.Nodes == 0:
			return registry.Errorf(registry.CodeInvalid,
				"%s: variant %s is to stay as it is, and %s is not quantized: name a method, such as quantize: {method: static}",
				s.File, v.Name, s.Source.Path.Written)
		case !asIs && v.Quantize == nil:
			return registry.Errorf(registry.CodeInvalid, "%s: variant %s: %s is already quantized (%s), so nothing makes it %s: write %s",
				s.File, v.Name, s.Source.Path.Written, found, v.Precision, asItIs(found))
		case !asIs:
			return registry.Errorf(registry.CodeInvalid,
				"%s: variant %s: %s is already quantized (%s) and is not quantized again: write %s, or start from the model as it was",
				s.File, v.Name, s.Source.Path.Written, found, asItIs(found))
		case found.Bits != 0 && v.Precision != PrecisionOf(found):
			return registry.Errorf(registry.CodeInvalid, "%s: variant %s: %s is quantized (%s) to %s: name the variant so",
				s.File, v.Name, s.Source.Path.Written, found, PrecisionOf(found))
		}
	}
	return nil
}

// quantizedSource says of the source that it is quantized, if it is, and its precision.
func quantizedSource(s *spec.Spec, m *onnx.Model) (said, precision string) {
	if q := m.Quantized(); q.Nodes > 0 {
		for _, v := range s.Variants {
			if v.Model.Written == "" {
				return q.String(), v.Precision
			}
		}
		return q.String(), PrecisionOf(q)
	}
	return "", validators.PrecisionFP32
}

// asItIs is the variant of a source that is quantized, as a spec says it.
func asItIs(q onnx.Quantized) string {
	return "variants: [{name: " + PrecisionOf(q) + ", quantize: {method: none}}]"
}

// PrecisionOf is that of a model whose weights were made smaller.
func PrecisionOf(q onnx.Quantized) string {
	if q.Bits == 8 {
		return validators.PrecisionInt8
	}
	return validators.PrecisionInt4
}
