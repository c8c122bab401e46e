package ingest

import (
	"slices"

	"mlpromote.dev/mlpromote/pipeline/run"
	"mlpromote.dev/mlpromote/pipeline/spec"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators/format/onnx"
)

// compressor is the toolchain that does the steps of a variant; empty where there are none.
func compressor(v spec.Variant) string {
	if len(v.Compress) == 0 {
		return ""
	}
	return run.OnnxRuntime
}

// compressOptions are the driver's words for the steps of a variant.
func compressOptions(v spec.Variant) []map[string]any {
	var all []map[string]any
	for _, s := range v.Compress {
		options := map[string]any{"method": s.Method}
		if s.Pattern != "" {
			options["pattern"] = s.Pattern
		}
		if s.Amount != nil {
			options["amount"] = float64(*s.Amount)
		}
		if s.Energy != nil {
			options["energy"] = float64(*s.Energy)
		}
		if s.Rank != nil {
			options["rank"] = *s.Rank
		}
		if len(s.Nodes) > 0 {
			options["nodes"] = s.Nodes
		}
		if len(s.Exclude) > 0 {
			options["exclude"] = s.Exclude
		}
		all = append(all, options)
	}
	return all
}

// checkCompressible refuses steps for a model that has nothing they change.
func checkCompressible(s *spec.Spec, v spec.Variant, file string, m *onnx.Model) error {
	if len(v.Compress) == 0 || slices.ContainsFunc([]string{"Conv", "ConvTranspose", "Gemm", "MatMul"},
		func(op string) bool { return m.Ops[onnx.DefaultDomain+"."+op] > 0 }) {
		return nil
	}
	return registry.Errorf(registry.CodeInvalid,
		"%s: variant %s: compress: %s has no convolution and no matrix product, and only their weights are compressed: leave compress out",
		s.File, v.Name, file)
}
