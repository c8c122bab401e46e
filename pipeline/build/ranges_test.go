package build

import (
	"testing"

	"mlpromote.dev/mlpromote/pipeline/plan"
	"mlpromote.dev/mlpromote/pipeline/run"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry/artifact"
)

// Every table of ranges that engines were quantized by is kept once, and only such tables.
func TestRangesFiles(t *testing.T) {
	t.Parallel()
	engine := func(method string, calibrated bool) BuiltEngine {
		e := BuiltEngine{planned: plan.Engine{Quantizer: &artifact.Toolchain{Name: plan.ONNXRuntime}, Quantize: map[string]any{"method": method}}}
		outcome := toolchain.Outcome{Files: []toolchain.OutputFile{{Name: "model.onnx"}}}
		if calibrated {
			outcome.Files = append(outcome.Files, toolchain.OutputFile{Name: rangesFile, Path: "p", Digest: "sha256:1", Size: 3})
		}
		e.steps = []run.Step{{Job: toolchain.Job{Verb: toolchain.VerbCompress}}, {Name: "quantize", Job: toolchain.Job{Verb: toolchain.VerbQuantize}, Outcome: outcome}}
		return e
	}
	static, other, dynamic := engine(plan.MethodStatic, true), engine(plan.MethodStatic, true), engine(plan.MethodDynamic, false)
	other.planned.Quantize["percentile"] = 99.0
	again := engine(plan.MethodStatic, true)
	again.planned.Quantize["per_channel"] = true // which says nothing of activations
	for name, c := range map[string]struct {
		engines []BuiltEngine
		files   int
		err     string
	}{
		"none": {nil, 0, ""}, "dynamic": {[]BuiltEngine{dynamic}, 0, ""}, "one": {[]BuiltEngine{static}, 1, ""},
		"the same twice": {[]BuiltEngine{static, again}, 1, ""},
		"two":            {[]BuiltEngine{static, dynamic, other}, 2, ""},
		"one without one": {[]BuiltEngine{static, engine(plan.MethodStatic, true), func() BuiltEngine {
			e := engine(plan.MethodStatic, false)
			e.planned.Quantize["percentile"] = 98.0
			return e
		}()}, 0, "quantize left no " + rangesFile},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := making{}
			b.Plan, b.engines = plan.Plan{Calibration: &plan.Set{}}, c.engines
			files, err := rangesFiles(b)
			if len(files) != c.files || (err == nil) != (c.err == "") || err != nil && err.Error() != c.err {
				t.Errorf("%d files, error %v; want %d, %q", len(files), err, c.files, c.err)
			}
		})
	}
}
