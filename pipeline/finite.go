package pipeline

import (
	"fmt"
	"math"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// unusual counts the elements and cases of a tensor that are NaN or infinite. Cases are numbered
// through all shards. The zero unusual has seen nothing.
type unusual struct {
	elements, nans            int64
	cases, nanCases, infinite int
	firstNaN, firstInfinite   int
}

// add looks at the rows of a tensor, which are the cases from number first on.
func (u *unusual) add(f *tensor.File, name string, first int) error {
	info, ok := f.Info(name)
	if !ok || len(info.Shape) == 0 || info.DType.Class() == tensor.ClassInteger {
		return nil
	}
	for row := range info.Shape[0] {
		t, err := f.Rows(name, row, row+1)
		if err != nil {
			return err
		}
		u.addCase(t.Float64s(), first+int(row))
	}
	return nil
}

func (u *unusual) addCase(values []float64, number int) {
	nans, infinite := 0, false
	for _, v := range values {
		if v != v {
			nans++
		}
		infinite = infinite || math.IsInf(v, 0)
	}
	u.elements, u.nans, u.cases = u.elements+int64(len(values)), u.nans+int64(nans), u.cases+1
	if nans > 0 {
		if u.nanCases == 0 {
			u.firstNaN = number
		}
		u.nanCases++
	}
	if infinite {
		if u.infinite == 0 {
			u.firstInfinite = number
		}
		u.infinite++
	}
}

// onlyNaN reports that there is nothing else to compare.
func (u *unusual) onlyNaN() bool { return u.elements > 0 && u.nans == u.elements }

// String says what was found, for people; "" for nothing.
func (u *unusual) String() string {
	text := ""
	if u.nanCases > 0 {
		text = fmt.Sprintf("NaN in %d of %d cases, the first is case %d", u.nanCases, u.cases, u.firstNaN)
	}
	if u.infinite > 0 {
		if text != "" {
			text += "; "
		}
		text += fmt.Sprintf("infinity in %d of %d cases, the first is case %d", u.infinite, u.cases, u.firstInfinite)
	}
	return text
}

// warnUnusual notes which inputs of a shard of cases hold NaN or infinity: a model may be made
// for them, so they are no error.
func (cs *caseSet) warnUnusual(f shard, path string, iface validators.Interface) error {
	for _, input := range iface.Inputs {
		var found unusual
		if err := found.add(f.File, input.Name, cs.set.Count); err != nil {
			return badTensors(fmt.Errorf("%s: %w", path, err))
		}
		if text := found.String(); text != "" {
			cs.warnings = append(cs.warnings, fmt.Sprintf("%s: tensor %q: %s: correct these cases unless the model is made for such values", path, input.Name, text))
		}
	}
	return nil
}

// checkGolden looks for NaN and infinity in the reference's outputs, where an engine passes only
// with the same. Errors: CodeInvalid for an output that is NaN everywhere, since nothing of it
// can be compared.
func (b *build) checkGolden() error {
	for _, output := range b.inputs.Interface.Outputs {
		var found unusual
		for i, file := range b.golden.files {
			if err := found.addFile(file.Path, output.Name, b.golden.set.Shards[i].First); err != nil {
				return err
			}
		}
		text := found.String()
		switch {
		case found.onlyNaN():
			return registry.WithHint(registry.Errorf(registry.CodeInvalid,
				"run the reference: output %q is NaN in every element of all %d cases, so that no engine can be compared with it", output.Name, found.cases),
				"correct the cases, or export the model without this output")
		case text != "":
			b.warnings = append(b.warnings, fmt.Sprintf("the reference's output %q has %s: an engine passes there only with the same values", output.Name, text))
		}
	}
	return nil
}

// addFile looks at a tensor of a file.
func (u *unusual) addFile(path, name string, first int) error {
	f, err := tensor.Open(path, tensor.Limits{})
	if err != nil {
		return badTensors(err)
	}
	defer f.Close()
	if err := u.add(f, name, first); err != nil {
		return badTensors(err)
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
