package pipeline

import (
	"errors"
	"io/fs"
	"path/filepath"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/cases"
	"mlpromote.dev/mlpromote/pipeline/plan"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// Cases that vanish before an engine is loaded with them end the step, by the error of the file.
func TestLostCasesOfALoad(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	lost := material{dir: dir, set: &registry.CaseSet{Count: 2, Shards: []registry.Shard{{File: "lost.safetensors", Count: 2}}}}
	v := verification{p: &Pipeline{}, scratch: dir, fetched: fetched{expected: expected{cases: lost}}}
	if _, err := v.plainLoad(t.Context(), candidate{}, &extra{}, nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v, want that the file does not exist", err)
	}
}

// A quantizer that leaves no table of ranges ends the build where it stores what it learned.
func TestStoreWithoutRanges(t *testing.T) {
	t.Parallel()
	e := builtEngine{planned: plan.Engine{Quantizer: &registry.Toolchain{Name: plan.ONNXRuntime}, Quantize: map[string]any{"method": plan.MethodStatic}}}
	e.steps = []takenStep{{name: "quantize", job: toolchain.Job{Verb: toolchain.VerbQuantize}}}
	b := build{}
	b.plan, b.engines = plan.Plan{Calibration: &plan.Set{}}, []builtEngine{e}
	if part, err := b.tuningPart(); !registry.HasCode(err, registry.CodeInternal) {
		t.Errorf("part %+v, error %v; want CodeInternal", part, err)
	}
	if _, _, err := b.pushSources(t.Context(), "models"); !registry.HasCode(err, registry.CodeInternal) {
		t.Errorf("storing the sources: error %v, want CodeInternal", err)
	}
}

// An engine whose form its toolchain does not know cannot be compiled again for a bisection.
func TestCalibrationOfAnUnknownForm(t *testing.T) {
	t.Parallel()
	b := bisector{made: howMade{Compile: map[string]any{"form": "other"}}, c: candidate{tool: tool{Toolchain: Toolchain{Profile: toolchain.Profile{Name: "openvino"}}}}}
	if inputs, err := b.compilerCalibration(t.Context()); err == nil {
		t.Errorf("inputs %v, want an error", inputs)
	}
}

// Cases that cannot be written where an engine is to read them end the plain load, whichever of the two files it is.
func TestPlainLoadOfHalf(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	x, err := tensor.New([]float32{1, 2}, 2, 1)
	if err != nil {
		t.Fatal(err)
	}
	const shard = "cases.safetensors"
	if err := cases.WriteShard(filepath.Join(dir, shard), map[string]tensor.Tensor{"x": x}); err != nil {
		t.Fatal(err)
	}
	set := &registry.CaseSet{Count: 2, Shards: []registry.Shard{{File: shard, Count: 2}}}
	v := verification{p: &Pipeline{}, scratch: t.TempDir(), fetched: fetched{expected: expected{cases: material{dir: dir, set: set}, golden: material{dir: t.TempDir(), set: set}}}}
	if load, err := v.plainLoad(t.Context(), candidate{}, &extra{}, nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("load %+v, error %v; want that the golden outputs do not exist", load, err)
	}
}

// A report counts as an attempt where it failed a limit that chance decides: on a rate, or on a mean that was drawn again and again.
func TestDrew(t *testing.T) {
	t.Parallel()
	one := registry.Figure(1)
	for name, c := range map[string]struct {
		check registry.Check
		drew  bool
	}{
		"a rate that fails":           {registry.Check{Misses: &one, Verdict: registry.VerdictFail}, true},
		"a mean that fails":           {registry.Check{Resampled: true, Verdict: registry.VerdictFail}, true},
		"a rate that passes":          {registry.Check{Misses: &one, Verdict: registry.VerdictPass}, false},
		"a rate that is not decided":  {registry.Check{Misses: &one, Verdict: registry.VerdictUndecided}, false},
		"an exact figure that fails":  {registry.Check{Verdict: registry.VerdictFail}, false},
		"an exact figure that passes": {registry.Check{Verdict: registry.VerdictPass}, false},
	} {
		if got := drew(registry.ParityReport{Checks: []registry.Check{c.check}}); got != c.drew {
			t.Errorf("%s: %t, want %t", name, got, c.drew)
		}
	}
}

// Latencies are compared with those of the engine in use only where limits ask for it.
func TestCompareLatencyIsNotAskedFor(t *testing.T) {
	t.Parallel()
	c := candidate{id: "engine-0"}
	v := verification{scratch: t.TempDir(), fetched: fetched{current: map[string]replaced{c.engine.Label(): {}},
		expected: expected{limits: validators.Limits{V: validators.LimitsVersion},
			cases: material{dir: t.TempDir(), set: &registry.CaseSet{Count: 2, Shards: []registry.Shard{{File: "lost.safetensors", Count: 2}}}}}}}
	if found, err := v.compareLatency(t.Context(), c, runOutputs{}); err != nil || found.ratio != nil || found.fault != "" {
		t.Errorf("compared %+v, error %v; want nothing", found, err)
	}
}

// The graph of a model is read from its file alone: not from another input, whatever that is called, and not from other files of the model.
func TestImporterOfABisection(t *testing.T) {
	t.Parallel()
	calibration := toolchain.Input{Role: toolchain.RoleCalibration, Name: "model.onnx"}
	weights := toolchain.Input{Role: toolchain.RoleModel, Name: "weights.bin"}
	b := bisector{}
	_, err := b.importer(t.Context(), loadable{entry: "model.onnx", inputs: []toolchain.Input{calibration, weights}}, nil)
	if !registry.HasCode(err, registry.CodeInternal) {
		t.Errorf("error %v, want CodeInternal", err)
	}
}

// Samples of earlier reports are run again only where they can have been drawn from these cases.
func TestIsSample(t *testing.T) {
	t.Parallel()
	v := verification{fetched: fetched{expected: expected{cases: material{set: &registry.CaseSet{Count: 100}}}}}
	many := make([]int, plainCases+1)
	for i := range many {
		many[i] = i
	}
	for name, c := range map[string]struct {
		numbers []int
		want    bool
	}{
		"some": {[]int{0, 7, 99}, true}, "one": {[]int{5}, true}, "as many as are drawn": {many[:plainCases], true},
		"none": {nil, false}, "too many": {many, false}, "one twice": {[]int{3, 3}, false}, "another order": {[]int{7, 3}, false},
		"below 0": {[]int{-1, 3}, false}, "beyond the last": {[]int{3, 100}, false},
	} {
		if got := v.isSample(c.numbers); got != c.want {
			t.Errorf("%s: got %t, want %t", name, got, c.want)
		}
	}
}
