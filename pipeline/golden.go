package pipeline

import (
	"fmt"

	"mlpromote.dev/mlpromote/pipeline/cases"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators"
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

// warn says something to a person.
func (p *Pipeline) warn(texts ...string) {
	if p.Warn == nil {
		return
	}
	for _, text := range texts {
		p.Warn(text)
	}
}
