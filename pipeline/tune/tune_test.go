package tune

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/run"
	"mlpromote.dev/mlpromote/pipeline/spec"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/pipeline/tradeoff"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
)

// What a trial loses is accuracy where that is compared, and else the noise of its worst output.
func TestLossOfATrial(t *testing.T) {
	t.Parallel()
	nan := math.NaN()
	outputs := func(db ...float64) map[string]evidence.OutputFigures {
		all := make(map[string]evidence.OutputFigures)
		for i, v := range db {
			all[string(rune('a'+i))] = evidence.OutputFigures{SNRdB: evidence.Figure(v)}
		}
		return all
	}
	for name, c := range map[string]struct {
		loss     string
		outputs  map[string]evidence.OutputFigures
		accuracy *evidence.Accuracy
		want     float64
	}{
		"noise":                        {"", outputs(40), nil, -40},
		"the worst output":             {"", outputs(40, 12, 30), nil, -12},
		"an exact output":              {"", outputs(math.Inf(1)), nil, -200},
		"noise beyond what is counted": {"", outputs(-300), nil, 200},
		"an output without a figure":   {"", outputs(40, nan), nil, 200},
		"nothing was compared":         {"", nil, nil, nan},
		"accuracy":                     {LossAccuracy, outputs(40), &evidence.Accuracy{Drop: 0.25}, 0.25},
		"accuracy that is not there":   {LossAccuracy, outputs(40), nil, nan},
		"accuracy without outputs":     {LossAccuracy, nil, &evidence.Accuracy{Drop: 0.25}, nan},
	} {
		tuned := &tuning{}
		tuned.result.Loss = c.loss
		report := evidence.ParityReport{Outputs: c.outputs, Accuracy: c.accuracy}
		if got := float64(tuned.loss(report)); got != c.want && !(math.IsNaN(got) && math.IsNaN(c.want)) {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}

// Candidates of a tuning are the same by the same rules, and by their precision.
func TestSameCandidate(t *testing.T) {
	t.Parallel()
	one := func() run.Candidate {
		c := run.Candidate{Model: run.Loadable{Inputs: []toolchain.Input{{Name: "x/a", Digest: "sha256:1"}}}}
		c.Tool.Identity.Name, c.Engine.Precision = "r", "int8"
		return c
	}
	moved := one()
	moved.Model.Inputs[0].Name = "y/a"
	if !one().Same(one()) || !one().Same(moved) {
		t.Error("the same candidate is another one")
	}
	for name, change := range map[string]func(c *run.Candidate){
		"another runtime":   func(c *run.Candidate) { c.Tool.Identity.Name = "s" },
		"loaded otherwise":  func(c *run.Candidate) { c.Engine.Load = &artifact.LoadProfile{Required: true} },
		"another precision": func(c *run.Candidate) { c.Engine.Precision = "fp32" },
		"other bytes":       func(c *run.Candidate) { c.Model.Inputs[0].Digest = "sha256:2" },
		"another file name": func(c *run.Candidate) { c.Model.Inputs[0].Name = "x/b" },
		"another folder":    func(c *run.Candidate) { c.Model.Inputs[0].Name = "x/b/a" },
		"another provider":  func(c *run.Candidate) { c.Engine.Providers = []artifact.Provider{{Name: "p"}} },
		"an accelerator":    func(c *run.Candidate) { c.Engine.Target.Accelerator = &artifact.TargetAccelerator{Vendor: "nvidia"} },
		"a file more":       func(c *run.Candidate) { c.Model.Inputs = append(c.Model.Inputs, toolchain.Input{}) },
	} {
		other := one()
		if change(&other); one().Same(other) {
			t.Errorf("%s: it counts as the same", name)
		}
	}
}

// The objective of a spec bounds times; where it does not, its limits do.
func TestObjectiveOfASpec(t *testing.T) {
	t.Parallel()
	read := func(t *testing.T, text string) *spec.Spec {
		t.Helper()
		dir := t.TempDir()
		file := filepath.Join(dir, spec.File)
		if err := errors.Join(os.WriteFile(filepath.Join(dir, "model.onnx"), nil, 0o600), os.Mkdir(filepath.Join(dir, "cases"), 0o700)); err != nil {
			t.Fatal(err)
		}
		text = "model: a/b\nversion: 1.0.0\nsource: model.onnx\ncases: {path: cases/, labels: label}\nvariants: [fp32]\ntargets: [linux/amd64/v1]\n" + text
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := spec.Load(file, spec.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	drop := 0.01
	for name, c := range map[string]struct {
		text string
		want tradeoff.Objective
	}{
		"nothing bounds times": {"objective: {max: accuracy}\n", tradeoff.Objective{Goal: "max accuracy"}},
		"the objective":        {"objective: {min: latency, subject_to: {p50: 3ms, p99: 9ms, accuracy_drop: 1%}}\nlimits: {latency: {p50: {max: 5ms}, p99: {max: 7ms}}}\n", tradeoff.Objective{Goal: "min latency", P50Ns: 3e6, P99Ns: 9e6, MaxLoss: &drop}},
		"limits":               {"objective: {min: latency}\nlimits: {latency: {p50: {max: 5ms}, p99: {max: 7ms}}}\n", tradeoff.Objective{Goal: "min latency", P50Ns: 5e6, P99Ns: 7e6}},
		"one of each":          {"objective: {min: latency, subject_to: {p99: 9ms}}\nlimits: {latency: {p50: {max: 5ms}, p99: {max: 7ms}}}\n", tradeoff.Objective{Goal: "min latency", P50Ns: 5e6, P99Ns: 9e6}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := objective(read(t, c.text))
			if got.P50Ns != c.want.P50Ns || got.P99Ns != c.want.P99Ns || (got.MaxLoss == nil) != (c.want.MaxLoss == nil) || got.MaxLoss != nil && *got.MaxLoss != drop {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}
