package build

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/cases"
	"mlpromote.dev/mlpromote/pipeline/goldenset"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// Two quantities that are taken for scores by their shape alone are a warning; scores are not, nor is what the spec says, nor
// columns that never change.
func TestGuessedScores(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		values  []float32
		guessed string
		kind    validators.Kind
		warns   string
	}{
		"unlike":                    {[]float32{100, 0.1, 900, 0.3, 500, 0.2}, validators.GuessedRow, validators.KindScores, `output "y" is guessed to be scores (it has a row of numbers for each case), and its columns have spreads from 0.0816 to 327: if they are quantities, write outputs: {y: {kind: value}}`},
		"beside a column of zeros":  {[]float32{1, 0, 3, 0, 4, 0}, validators.GuessedRow, validators.KindScores, ""},
		"beside a constant":         {[]float32{1, 5000, 3, 5000, 4, 5000}, validators.GuessedRow, validators.KindScores, ""},
		"constants alone":           {[]float32{1, 5000, 1, 5000, 1, 5000}, validators.GuessedRow, validators.KindScores, ""},
		"unlike in one case alone":  {append(slices.Repeat([]float32{1, 2, 2, 3}, 40), 1, 5000), validators.GuessedRow, validators.KindScores, ""},
		"constant but for the last": {append(slices.Repeat([]float32{1, 500, 900, 500}, 40), 1, 501), validators.GuessedRow, validators.KindScores, `output "y" is guessed to be scores`},
		"alike":                     {[]float32{1, 2, 3, 5, 4, 4}, validators.GuessedRow, validators.KindScores, ""},
		"its name says scores":      {[]float32{100, 0.1, 900, 0.3, 500, 0.2}, "its name has logit", validators.KindScores, ""},
		"the spec says scores":      {[]float32{100, 0.1, 900, 0.3, 500, 0.2}, "", validators.KindScores, ""},
		"guessed to be values":      {[]float32{100, 0.1, 900, 0.3, 500, 0.2}, validators.GuessedRow, validators.KindValue, ""},
	} {
		m, golden := twoColumns(t, c.values, c.kind)
		if c.guessed != "" {
			m.Plan.Guessed = map[string]string{"y": c.guessed}
		}
		got, err := guessedScores(m, golden)
		if err != nil || strings.Join(got, "") != "" != (c.warns != "") || !strings.HasPrefix(strings.Join(got, ""), c.warns) {
			t.Errorf("%s: warnings %q (%v), want %q", name, got, err, c.warns)
		}
	}
}

// twoColumns are golden outputs with two numbers for each case.
func twoColumns(t *testing.T, values []float32, kind validators.Kind) (Maker, goldenset.Set) {
	t.Helper()
	n := len(values) / 2
	y, err := tensor.New(values, int64(n), 2)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "golden.safetensors")
	if err := cases.WriteShard(file, map[string]tensor.Tensor{"y": y}); err != nil {
		t.Fatal(err)
	}
	m := Maker{}
	m.Inputs.Interface.Outputs = []validators.TensorInfo{{Name: "y", Kind: kind, Shape: []validators.Dim{{Symbol: "batch"}, {Size: 2}}}}
	return m, goldenset.Set{Files: []toolchain.OutputFile{{Path: file}}, Set: artifact.CaseSet{Shards: []artifact.Shard{{Count: n}}}}
}

// A quantity that a spec calls a probability is refused; rounding beyond 1 is not.
func TestProbabilities(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		values []float32
		kind   validators.Kind
		want   string
	}{
		"probabilities": {[]float32{0, 1, 0.25, 0.75, 1.003, -0.003}, validators.KindProbability, ""},
		"prices":        {[]float32{0.5, 300000, 0.25, 900000}, validators.KindProbability, `output "y" is of kind probability, and the reference model returns 0.25 to 9e+05 for it, want 0 to 1`},
		"logits":        {[]float32{-3, 0.5, 0.25, 0.75}, validators.KindProbability, `output "y" is of kind probability, and the reference model returns -3 to 0.75 for it`},
		"values":        {[]float32{-3, 300000}, validators.KindValue, ""},
	} {
		m, golden := twoColumns(t, c.values, c.kind)
		err := checkProbabilities(m, golden)
		if c.want == "" && err == nil {
			continue
		}
		if err == nil || c.want == "" || !strings.HasPrefix(err.Error(), c.want) || registry.CodeOf(err) != registry.CodeInvalid || !strings.Contains(strings.Join(registry.Hints(err), ""), "kind: value") {
			t.Errorf("%s: error %v, want %q", name, err, c.want)
		}
	}
}
