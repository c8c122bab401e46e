package pipeline

import (
	"fmt"

	"mlpromote.dev/mlpromote/pipeline/cases"
	"mlpromote.dev/mlpromote/registry"
)

// checkGolden looks for NaN and infinity in the reference's outputs, where an engine passes only
// with the same. Errors: CodeInvalid for an output that is NaN everywhere, since nothing of it
// can be compared.
func (b *build) checkGolden() error {
	for _, output := range b.inputs.Interface.Outputs {
		var found cases.Unusual
		for i, file := range b.golden.files {
			if err := found.AddFile(file.Path, output.Name, b.golden.set.Shards[i].First); err != nil {
				return err
			}
		}
		text := found.String()
		switch {
		case found.OnlyNaN():
			return registry.WithHint(registry.Errorf(registry.CodeInvalid,
				"run the reference: output %q is NaN in every element of all %d cases, so that no engine can be compared with it", output.Name, found.Cases()),
				"correct the cases, or export the model without this output")
		case text != "":
			b.warnings = append(b.warnings, fmt.Sprintf("the reference's output %q has %s: an engine passes there only with the same values", output.Name, text))
		}
	}
	return nil
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
