package diagnose

import (
	"testing"

	"mlpromote.dev/mlpromote/pipeline/plan"
	"mlpromote.dev/mlpromote/pipeline/run"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
)

// What each layer costs is asked of the quantizer that made the engine: it has to be ONNX Runtime's, to int8, and nothing before it.
func TestHasLayerCosts(t *testing.T) {
	t.Parallel()
	by := func(name, method string) run.Recipe {
		return run.Recipe{Quantizer: &artifact.Toolchain{Name: name}, Quantize: map[string]any{"method": method}}
	}
	compressed := by(run.OnnxRuntime, plan.MethodStatic)
	compressed.Compress = []map[string]any{{"prune": 0.5}}
	student := by(run.OnnxRuntime, plan.MethodStatic)
	student.Student = []plan.File{{}}
	for name, c := range map[string]struct {
		made run.Recipe
		ok   bool
	}{
		"static": {by(run.OnnxRuntime, plan.MethodStatic), true}, "dynamic": {by(run.OnnxRuntime, plan.MethodDynamic), true},
		"another method": {by(run.OnnxRuntime, "weights"), false}, "another quantizer": {by("nncf", plan.MethodStatic), false},
		"not quantized": {run.Recipe{Quantize: map[string]any{"method": plan.MethodStatic}}, false},
		"compressed":    {compressed, false}, "a student": {student, false}, "no method": {run.Recipe{Quantizer: &artifact.Toolchain{Name: run.OnnxRuntime}}, false},
	} {
		if err := hasLayerCosts(run.Candidate{}, c.made); (err == nil) != c.ok || err != nil && !registry.HasCode(err, registry.CodeInvalid) {
			t.Errorf("%s: error %v, want that it can be asked: %t", name, err, c.ok)
		}
	}
}
