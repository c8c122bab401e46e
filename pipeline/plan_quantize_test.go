package pipeline_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"mlpromote.dev/mlpromote/pipeline"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators"
)

// What the spec leaves out depends on the method, and the range of integers on whether
// the target's machines add products of 8 bits without saturating.
func TestQuantizeOptions(t *testing.T) {
	t.Parallel()
	tools := map[string]pipeline.Tool{"onnxruntime": {
		Identity: toolchain.Identity{Name: "onnxruntime", Version: "1.30.0"},
		Profile:  toolchain.Profile{CompileOptions: func(registry.Target, string) (map[string]any, error) { return nil, nil }},
	}}
	for name, c := range map[string]struct {
		features   []string
		asks, want map[string]any
	}{
		"static":          {asks: map[string]any{"method": "static-int8"}, want: map[string]any{"method": "static-int8", "observer": "minmax", "reduce_range": true}},
		"static on vnni":  {features: []string{"avx512_vnni"}, asks: map[string]any{"method": "static-int8", "observer": "entropy"}, want: map[string]any{"method": "static-int8", "observer": "entropy", "reduce_range": false}},
		"dynamic":         {asks: map[string]any{"method": "dynamic-int8", "per_channel": true}, want: map[string]any{"method": "dynamic-int8", "per_channel": true, "reduce_range": true}},
		"dynamic on vnni": {features: []string{"avx_vnni"}, asks: map[string]any{"method": "dynamic-int8"}, want: map[string]any{"method": "dynamic-int8", "reduce_range": false}},
		"asked for":       {features: []string{"avx_vnni"}, asks: map[string]any{"method": "dynamic-int8", "reduce_range": true}, want: map[string]any{"method": "dynamic-int8", "reduce_range": true}},
		"fp16":            {asks: map[string]any{"method": "fp16"}, want: map[string]any{"method": "fp16"}},
		"none":            {},
	} {
		plan, err := pipeline.NewPlan(pipeline.Inputs{
			Name: "a", Version: "1.0.0", Model: []toolchain.Input{{Name: "model.onnx"}},
			Interface: validators.Interface{Outputs: []validators.TensorInfo{{Name: "y", DType: "float32", Shape: []validators.Dim{}}}},
			Engines: []pipeline.RequestedEngine{{Toolchain: "onnxruntime", Variant: "v", Precision: "int8", Quantize: c.asks,
				Target: registry.Target{Name: "t", CPU: registry.TargetCPU{Arch: "amd64", Features: c.features}}}},
		}, tools)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if diff := cmp.Diff(c.want, plan.Engines[0].Quantize); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
