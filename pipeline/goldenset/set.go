package goldenset

import (
	"fmt"
	"strings"

	"mlpromote.dev/mlpromote/pipeline/cases"
	"mlpromote.dev/mlpromote/pipeline/run"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/validators"
)

// Check looks for NaN and infinity in the golden outputs, where an engine passes only
// with the same, and returns what to warn of. Errors: CodeInvalid for an output that is NaN
// everywhere, since nothing of it can be compared.
func (g Set) Check(outputs []validators.TensorInfo) (warnings []string, err error) {
	for _, output := range outputs {
		var found cases.Unusual
		for i, file := range g.Files {
			if err := found.AddFile(file.Path, output.Name, g.Set.Shards[i].First); err != nil {
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

// LargestHalf is the largest number of float16.
const LargestHalf = 65504

// Short writes a large number with one digit: 7e6.
func Short(v float64) string {
	return strings.NewReplacer("e+0", "e", "e+", "e").Replace(fmt.Sprintf("%.0e", v))
}

// Set is the golden outputs.
type Set struct {
	Set           artifact.CaseSet
	Files         []toolchain.OutputFile
	Step          run.Step
	Latency       evidence.Latency    // of the reference's own run
	Warnings      []string            // about its outputs
	LabelWarnings []string            // of these, the ones about labels, which provenance keeps
	CrossCheck    evidence.CrossCheck // who checked them
	CrossChecking run.Step            // by which that was done; without a driver, it was not
}
