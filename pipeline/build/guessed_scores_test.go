package build

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/cases"
	"mlpromote.dev/mlpromote/pipeline/goldenset"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
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
		n := len(c.values) / 2
		y, err := tensor.New(c.values, int64(n), 2)
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), "golden.safetensors")
		if err := cases.WriteShard(file, map[string]tensor.Tensor{"y": y}); err != nil {
			t.Fatal(err)
		}
		m := Maker{}
		m.Inputs.Interface.Outputs = []validators.TensorInfo{{Name: "y", Kind: c.kind, Shape: []validators.Dim{{Symbol: "batch"}, {Size: 2}}}}
		if c.guessed != "" {
			m.Plan.Guessed = map[string]string{"y": c.guessed}
		}
		got, err := guessedScores(m, goldenset.Set{Files: []toolchain.OutputFile{{Path: file}}, Set: artifact.CaseSet{Shards: []artifact.Shard{{Count: n}}}})
		if err != nil || strings.Join(got, "") != "" != (c.warns != "") || !strings.HasPrefix(strings.Join(got, ""), c.warns) {
			t.Errorf("%s: warnings %q (%v), want %q", name, got, err, c.warns)
		}
	}
}
