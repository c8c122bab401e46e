package verify

import (
	"math"
	"path/filepath"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/cases"
	"mlpromote.dev/mlpromote/pipeline/run"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// Some of the cases are compared by the spread that an output has over all of them.
func TestSomeCasesHaveTheSpreadOfAll(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	y, err := tensor.New([]float32{1, 3, 5, 7}, 4, 1)
	if err == nil {
		err = cases.WriteShard(filepath.Join(dir, "a.safetensors"), map[string]tensor.Tensor{"y": y})
	}
	if err != nil {
		t.Fatal(err)
	}
	set := artifact.CaseSet{Shards: []artifact.Shard{{File: "a.safetensors", Count: 4}}}
	v := Session{}
	v.Cases, v.Golden = run.Material{Dir: dir, Set: &set}, run.Material{Dir: dir, Set: &set}
	v.Iface.Outputs = []validators.TensorInfo{{Name: "y", DType: tensor.Float32}}
	v.Limits = validators.Limits{V: validators.LimitsVersion, Precisions: map[string]validators.PrecisionLimits{"fp32": {Outputs: map[string]validators.OutputLimits{
		"y": {SNRdB: &validators.AtLeast{Min: 80}}}}}}
	run, err := comparisonOfSome(t.Context(), v, "fp32")
	if err != nil {
		t.Fatal(err)
	}
	got := 0.0
	if spreads := run.Outputs["y"].Spreads; len(spreads) == 1 {
		got = spreads[0]
	}
	if want := math.Sqrt(5); math.Abs(got-want) > 1e-6 {
		t.Errorf("a spread of %v, want %v", got, want)
	}
}
