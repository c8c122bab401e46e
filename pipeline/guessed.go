package pipeline

import (
	"fmt"
	"math"

	"mlpromote.dev/mlpromote/pipeline/cases"
	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// unlike is how many times the spread of one column of scores may be that of another before they look like quantities.
const unlike = 10

// guessedScores warns of outputs that are guessed to be scores by their shape alone, and whose columns have very different
// spreads, as quantities with units of their own do. Errors of scores are relative to the spread of all columns, which hides
// errors of the small ones.
func (m maker) guessedScores(golden goldenSet) ([]string, error) {
	var warnings []string
	for _, output := range m.inputs.Interface.Outputs {
		why := m.plan.Guessed[output.Name]
		if why != validators.GuessedRow || output.Kind != validators.KindScores {
			continue
		}
		least, most, err := golden.spreadsOf(output.Name)
		if err != nil {
			return nil, err
		}
		if most > unlike*least {
			warnings = append(warnings, fmt.Sprintf("output %q is guessed to be scores (%s), and its columns have spreads from %.3g to %.3g: "+
				"if they are quantities, write outputs: {%s: {kind: value}}, and else kind: scores", output.Name, why, least, most, output.Name))
		}
	}
	return warnings, nil
}

// spreadsOf are the smallest and the largest spread of a column of an output that changes.
func (g goldenSet) spreadsOf(name string) (least, most float64, err error) {
	comparison := tensor.NewComparison(tensor.Options{Channels: true})
	for i, file := range g.files {
		f, err := tensor.Open(file.Path, tensor.Limits{})
		if err != nil {
			return 0, 0, cases.TensorError(err)
		}
		t, err := f.Rows(name, 0, int64(g.set.Shards[i].Count))
		_ = f.Close()
		if err != nil {
			return 0, 0, cases.TensorError(err)
		}
		if err := comparison.Add(i, t, t); err != nil {
			return 0, 0, cases.TensorError(err)
		}
	}
	least = math.Inf(1)
	for _, spread := range comparison.Result().Spreads {
		least, most = min(least, spread), max(most, spread)
	}
	return least, most, nil
}
