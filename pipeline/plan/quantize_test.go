package plan_test

import (
	"cmp"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"mlpromote.dev/mlpromote/pipeline/cases"
	"mlpromote.dev/mlpromote/pipeline/plan"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/validators"
)

// What the spec leaves out depends on the method, and the range of integers on whether
// the target's machines add products of 8 bits without saturating.
func TestQuantizeOptions(t *testing.T) {
	t.Parallel()
	tools := map[string]plan.Tool{"nncf": {}, "onnxruntime": {
		Identity: toolchain.Identity{Name: "onnxruntime", Version: "1.30.0"},
		Profile:  toolchain.Profile{CompileOptions: func(artifact.Target, string) (map[string]any, error) { return nil, nil }},
	}}
	for name, c := range map[string]struct {
		arch       string // amd64 where empty
		features   []string
		quantizer  string // onnxruntime where empty
		asks, want map[string]any
	}{
		"static": {asks: map[string]any{"method": "static-int8"}, want: map[string]any{"method": "static-int8", "observer": "minmax", "reduce_range": true}},
		"static on vnni": {features: []string{"avx512_vnni"}, asks: map[string]any{"method": "static-int8", "observer": "entropy"},
			want: map[string]any{"method": "static-int8", "observer": "entropy", "reduce_range": false}},
		"dynamic":         {asks: map[string]any{"method": "dynamic-int8", "per_channel": true}, want: map[string]any{"method": "dynamic-int8", "per_channel": true, "reduce_range": true}},
		"dynamic on vnni": {features: []string{"avx_vnni"}, asks: map[string]any{"method": "dynamic-int8"}, want: map[string]any{"method": "dynamic-int8", "reduce_range": false}},
		"asked for": {features: []string{"avx_vnni"}, asks: map[string]any{"method": "dynamic-int8", "reduce_range": true},
			want: map[string]any{"method": "dynamic-int8", "reduce_range": true}},
		"fp16":              {asks: map[string]any{"method": "fp16"}, want: map[string]any{"method": "fp16"}},
		"not to be reduced": {asks: map[string]any{"method": "dynamic-int8", "reduce_range": false}, want: map[string]any{"method": "dynamic-int8", "reduce_range": false}},
		"on arm":            {arch: "arm64", asks: map[string]any{"method": "dynamic-int8"}, want: map[string]any{"method": "dynamic-int8", "reduce_range": false}},
		"weights":           {asks: map[string]any{"method": "weights-int8"}, want: map[string]any{"method": "weights-int8"}},
		"accuracy aware": {quantizer: "nncf", asks: map[string]any{"method": "static-int8", "accuracy_aware": true}, want: map[string]any{
			"method": "static-int8", "accuracy_aware": true, "labels": "label", "max_drop": 0.01, "output": "y", "reduce_range": true}},
		"none": {},
	} {
		by := ""
		if c.asks != nil {
			by = cmp.Or(c.quantizer, "onnxruntime")
		}
		p, err := plan.New(plan.Inputs{
			Name: "a", Version: "1.0.0", Model: []toolchain.Input{{Name: "model.onnx"}},
			Interface: validators.Interface{Outputs: []validators.TensorInfo{{Name: "y", DType: "float32", Shape: []validators.Dim{}}}},
			Engines: []plan.Requested{{Toolchain: "onnxruntime", Variant: "v", Precision: "int8", Quantize: c.asks, Quantizer: by,
				Target: artifact.Target{Name: "t", CPU: artifact.TargetCPU{Arch: cmp.Or(c.arch, "amd64"), Features: c.features}}}},
			Limits: validators.LimitOverrides{Accuracy: &validators.AccuracyLimit{Metric: "top1", Drop: &validators.AtMost{Max: 0.01}}},
			Cases:  cases.Set{Record: artifact.CaseSet{Count: 600, Labels: "label"}},
		}, tools)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if diff := gocmp.Diff(c.want, p.Engines[0].Quantize); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
