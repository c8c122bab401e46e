package build

import (
	"testing"

	"mlpromote.dev/mlpromote/pipeline/plan"
	"mlpromote.dev/mlpromote/pipeline/run"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
)

// A quantizer that leaves no table of ranges ends the build where it stores what it learned.
func TestStoreWithoutRanges(t *testing.T) {
	t.Parallel()
	e := BuiltEngine{planned: plan.Engine{Quantizer: &artifact.Toolchain{Name: plan.ONNXRuntime}, Quantize: map[string]any{"method": plan.MethodStatic}}}
	e.steps = []run.Step{{Name: "quantize", Job: toolchain.Job{Verb: toolchain.VerbQuantize}}}
	b := making{}
	b.Plan, b.engines = plan.Plan{Calibration: &plan.Set{}}, []BuiltEngine{e}
	if part, err := tuningPart(b); !registry.HasCode(err, registry.CodeInternal) {
		t.Errorf("part %+v, error %v; want CodeInternal", part, err)
	}
	if _, _, err := pushSources(t.Context(), b, "models"); !registry.HasCode(err, registry.CodeInternal) {
		t.Errorf("storing the sources: error %v, want CodeInternal", err)
	}
}
