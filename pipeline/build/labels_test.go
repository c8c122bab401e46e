package build

import (
	"path/filepath"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/cases"
	"mlpromote.dev/mlpromote/pipeline/goldenset"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/accuracy"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// A reference model that is right no more often than the most frequent label is a warning: labels of other cases, or in another order,
// make it one.
func TestReferenceWithoutSkill(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answers, labels []int64
		warns           bool
	}{
		"right":                  {[]int64{0, 1, 2, 0}, []int64{0, 1, 2, 0}, false},
		"better than a constant": {[]int64{0, 1, 2, 1}, []int64{0, 1, 2, 0}, false},
		"as good as a constant":  {[]int64{0, 2, 1, 0}, []int64{0, 1, 2, 0}, true},
		"worse":                  {[]int64{1, 1, 2, 2}, []int64{0, 0, 2, 0}, true},
		"one label":              {[]int64{1, 1, 1, 1}, []int64{1, 1, 1, 1}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			write := func(file string, values []int64) string {
				values64, err := tensor.New(values, int64(len(values)))
				if err == nil {
					err = cases.WriteShard(filepath.Join(dir, file), map[string]tensor.Tensor{"y": values64})
				}
				if err != nil {
					t.Fatal(err)
				}
				return filepath.Join(dir, file)
			}
			m := Maker{}
			m.Plan.Interface.Outputs = []validators.TensorInfo{{Name: "y", Kind: validators.KindClass, DType: tensor.Int64, Shape: []validators.Dim{{Symbol: "batch"}}}}
			m.Inputs.Cases.Record.Labels = "y"
			m.Inputs.Cases.Files = []toolchain.Input{{Name: "cases", Path: write("cases", c.labels)}}
			golden := goldenset.Set{Files: []toolchain.OutputFile{{Path: write("golden", c.answers)}}}
			golden.Set.Shards = []artifact.Shard{{Count: len(c.labels)}}
			warnings, err := checkLabels(m, golden)
			if err != nil || (len(warnings) > 0) != c.warns || c.warns && !strings.Contains(warnings[0], "the most frequent label alone") {
				t.Errorf("warnings %q (%v), want one: %t", warnings, err, c.warns)
			}
		})
	}
}

// Labels that a model ranks the wrong way round are turned around, or of other cases.
func TestLabelsTurnedAround(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		labels []int64
		warns  bool
	}{
		"right":         {[]int64{0, 0, 1, 1}, false},
		"turned around": {[]int64{1, 1, 0, 0}, true},
	} {
		dir := t.TempDir()
		store := func(file string, values tensor.Tensor) string {
			if err := cases.WriteShard(filepath.Join(dir, file), map[string]tensor.Tensor{"y": values}); err != nil {
				t.Fatal(err)
			}
			return filepath.Join(dir, file)
		}
		labels, err := tensor.New(c.labels, 4)
		if err != nil {
			t.Fatal(err)
		}
		scores, err := tensor.New([]float32{0.1, 0.2, 0.8, 0.9}, 4)
		if err != nil {
			t.Fatal(err)
		}
		m := Maker{}
		m.Plan.Interface.Outputs = []validators.TensorInfo{{Name: "y", Kind: validators.KindProbability, DType: tensor.Float32, Shape: []validators.Dim{{Symbol: "batch"}}}}
		m.Plan.Limits.Accuracy = &validators.AccuracyLimit{Metric: accuracy.AUC}
		m.Inputs.Cases.Record.Labels = "y"
		m.Inputs.Cases.Files = []toolchain.Input{{Name: "cases", Path: store("cases", labels)}}
		golden := goldenset.Set{Files: []toolchain.OutputFile{{Path: store("golden", scores)}}}
		golden.Set.Shards = []artifact.Shard{{Count: 4}}
		warnings, err := checkLabels(m, golden)
		if err != nil || (len(warnings) > 0) != c.warns || c.warns && !strings.Contains(warnings[0], "worse than guessing") {
			t.Errorf("%s: warnings %q (%v), want one: %t", name, warnings, err, c.warns)
		}
	}
}
