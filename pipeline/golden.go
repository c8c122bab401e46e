package pipeline

import (
	"fmt"
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/pipeline/cases"
	"mlpromote.dev/mlpromote/pipeline/plan"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// check looks for NaN and infinity in the golden outputs, where an engine passes only
// with the same, and returns what to warn of. Errors: CodeInvalid for an output that is NaN
// everywhere, since nothing of it can be compared.
func (g goldenSet) check(outputs []validators.TensorInfo) (warnings []string, err error) {
	for _, output := range outputs {
		var found cases.Unusual
		for i, file := range g.files {
			if err := found.AddFile(file.Path, output.Name, g.set.Shards[i].First); err != nil {
				return warnings, err
			}
		}
		text := found.String()
		switch {
		case found.OnlyNaN():
			return warnings, registry.WithHint(registry.Errorf(registry.CodeInvalid,
				"run the reference: output %q is NaN in every element of all %d cases, so that no engine can be compared with it", output.Name, found.Cases()),
				"correct the cases, or export the model without this output")
		case text != "":
			warnings = append(warnings, fmt.Sprintf("golden output %q has %s: an engine passes there only with the same values", output.Name, text))
		}
	}
	return warnings, nil
}

// largestHalf is the largest number of float16.
const largestHalf = 65504

// beyondHalf warns of golden outputs that float16 does not hold, if a planned engine computes in it: it has infinity there.
func (m maker) beyondHalf(g goldenSet) (warnings []string, err error) {
	i := slices.IndexFunc(m.plan.Engines, func(e plan.Engine) bool {
		numbers, _ := registry.NumberFormat(e.Precision)
		return numbers == validators.PrecisionFP16
	})
	if i < 0 {
		return nil, nil
	}
	for _, output := range m.inputs.Interface.Outputs {
		if output.DType.Class() != tensor.ClassFloat {
			continue
		}
		values, err := g.rangeOf(output.Name)
		if err != nil {
			return nil, err
		}
		if largest := max(-values.low, values.high); values.low <= values.high && largest > largestHalf {
			warnings = append(warnings, fmt.Sprintf("variant %s: output %q reaches %s, float16 ends at 65504: scale what the model predicts, or take bf16, which has the range of float32",
				m.plan.Engines[i].Variant, output.Name, short(largest)))
		}
	}
	return warnings, nil
}

// short writes a large number with one digit: 7e6.
func short(v float64) string {
	return strings.NewReplacer("e+0", "e", "e+", "e").Replace(fmt.Sprintf("%.0e", v))
}

// warn says something to a person.
func (p *Pipeline) warn(texts ...string) {
	if p.Warn == nil {
		return
	}
	for _, text := range texts {
		p.Warn(text)
	}
}
