package build

import (
	"fmt"
	"slices"

	"mlpromote.dev/mlpromote/pipeline/cases"
	"mlpromote.dev/mlpromote/pipeline/goldenset"
	"mlpromote.dev/mlpromote/pipeline/plan"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// beyondHalf warns of golden outputs that float16 does not hold, if a planned engine computes in it: it has infinity there.
func beyondHalf(m Maker, g goldenset.Set) (warnings []string, err error) {
	i := slices.IndexFunc(m.Plan.Engines, func(e plan.Engine) bool {
		numbers, _ := artifact.NumberFormat(e.Precision)
		return numbers == validators.PrecisionFP16
	})
	if i < 0 {
		return nil, nil
	}
	for _, output := range m.Inputs.Interface.Outputs {
		if output.DType.Class() != tensor.ClassFloat {
			continue
		}
		values, err := g.RangeOf(output.Name)
		if err != nil {
			return nil, err
		}
		if largest := max(-values.Low, values.High); values.Low <= values.High && largest > goldenset.LargestHalf {
			warnings = append(warnings, fmt.Sprintf("variant %s: output %q reaches %s, float16 ends at 65504: scale what the model predicts, or take bf16, which has the range of float32",
				m.Plan.Engines[i].Variant, output.Name, goldenset.Short(largest)))
		}
	}
	return warnings, nil
}

// guessedScores warns of outputs that are guessed to be scores by their shape alone, and whose columns have very different
// spreads, as quantities with units of their own do. Errors of scores are relative to the spread of all columns, which hides
// errors of the small ones.
func guessedScores(m Maker, golden goldenset.Set) ([]string, error) {
	var warnings []string
	for _, output := range m.Inputs.Interface.Outputs {
		why := m.Plan.Guessed[output.Name]
		if why != validators.GuessedRow || output.Kind != validators.KindScores {
			continue
		}
		least, most, err := golden.SpreadsOf(output.Name)
		if err != nil {
			return nil, err
		}
		if most > goldenset.Unlike*least {
			warnings = append(warnings, fmt.Sprintf("output %q is guessed to be scores (%s), and its columns have spreads from %.3g to %.3g: "+
				"if they are quantities, write outputs: {%s: {kind: value}}, and else kind: scores", output.Name, why, least, most, output.Name))
		}
	}
	return warnings, nil
}

// oneAnswer warns of outputs whose values are answers, and the same in all cases: an engine that always gives them passes,
// since nothing says that it does no better.
func oneAnswer(m Maker, golden goldenset.Set) (warnings []string, err error) {
	for _, output := range m.Inputs.Interface.Outputs {
		limits, err := validators.DefaultLimits(validators.PrecisionFP32, output, golden.Set.Count)
		if err != nil {
			return warnings, err
		}
		if limits.Equal == nil || golden.Set.Count < 2 {
			continue
		}
		same, err := golden.SameRows(output.Name)
		if err != nil {
			return warnings, cases.TensorError(err)
		}
		if same {
			warnings = append(warnings, fmt.Sprintf("output %q has the same answer in all %d cases: an engine that always gives it passes: "+
				"add cases with other answers", output.Name, golden.Set.Count))
		}
	}
	return warnings, nil
}
