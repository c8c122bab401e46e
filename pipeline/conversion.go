package pipeline

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"mlpromote.dev/mlpromote/pipeline/cases"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// countConverted runs the framework of the source a second time, on the cases as engines take them, and notes in golden how many
// answers that alone changes. It does nothing if the cases have the types of engines.
func (m maker) countConverted(ctx context.Context, to reporter, golden *goldenSet) error {
	set := m.inputs.Cases
	if !set.Converted() {
		return nil
	}
	driver, job, kind, _ := m.referenceRun()
	job.Inputs = slices.Concat(m.inputs.imported.source.files, set.Engines())
	step, err := m.do(ctx, to, driver, wanted{name: "run the reference on converted cases", job: job, options: job.Options})
	if err != nil {
		return m.inputs.Cases.NamedIn(err)
	}
	second := goldenSet{set: golden.set}
	for _, shard := range golden.set.Shards {
		file, ok := step.outcome.File("outputs/" + referenceID + "/" + shard.File)
		if !ok {
			return registry.Errorf(registry.CodeInternal, "run the reference on converted cases: no outputs for shard %s", shard.File)
		}
		second.files = append(second.files, file)
	}
	answers := make(map[int]bool)
	for _, output := range answering(m.inputs.Interface) {
		if err := golden.otherAnswers(second, output, m.tolerance(), answers); err != nil {
			return registry.Errorf(registry.CodeOf(err), "run the reference on converted cases: output %q: %w", output.Name, err)
		}
	}
	golden.set.Conversion = &registry.Conversion{Cases: len(set.Changed), Answers: len(answers)}
	if text := conversionText(golden.set, kind); text != "" {
		golden.warnings = append(golden.warnings, text)
	}
	return nil
}

// conversionText says which answers a conversion changes; empty for none.
func conversionText(golden registry.CaseSet, kind string) string {
	c := golden.Conversion
	if c == nil || c.Answers == 0 {
		return ""
	}
	return fmt.Sprintf("engines take the inputs with fewer digits than the cases have, and with those %s itself answers %d of %s otherwise (%.3g %%): "+
		"no engine can do better; train the model on float32, such as with times that count from a later day, or allow it in limits",
		kind, c.Answers, registry.Count(golden.Count, "case"), 100*float64(c.Answers)/float64(golden.Count))
}

// answering are the outputs whose values are the answers of a model: the one with an answer for each case, or all.
func answering(iface validators.Interface) []validators.TensorInfo {
	if name, ok := iface.ScoredOutput(false); ok {
		output, _ := iface.Output(name)
		return []validators.TensorInfo{output}
	}
	return iface.Outputs
}

// otherAnswers notes the cases whose answers differ in an output: the number or the index of the largest score, or a value by more
// than a tolerance.
func (g goldenSet) otherAnswers(second goldenSet, output validators.TensorInfo, allowed crossCheckTolerance, differ map[int]bool) error {
	values, err := g.rangeOf(output.Name)
	if err != nil {
		return err
	}
	for i, shard := range g.set.Shards {
		first, err := readOutput(g.files[i].Path, output.Name)
		if err != nil {
			return err
		}
		other, err := readOutput(second.files[i].Path, output.Name)
		if err != nil {
			return err
		}
		comparison := tensor.NewComparison(allowed.options(first.DType, values.size()))
		for row := range int64(shard.Count) {
			a, err := first.Rows(row, row+1)
			if err != nil {
				return cases.TensorError(err)
			}
			b, err := other.Rows(row, row+1)
			if err == nil {
				err = comparison.Add(shard.First+int(row), a, b)
			}
			if err != nil {
				return cases.TensorError(err)
			}
		}
		for row, of := range comparison.Each() {
			if of.Failed > 0 && (!output.Kind.Ranks() || first.DType.Class() != tensor.ClassFloat || of.Top1 > 0) {
				differ[shard.First+row] = true
			}
		}
	}
	return nil
}

// rangeOf is the range of an output's values, without fill values.
func (g goldenSet) rangeOf(name string) (valueRange, error) {
	var sizes tensor.Magnitudes
	if err := g.eachRow(name, sizes.Add); err != nil {
		return valueRange{}, err
	}
	values := newValueRange(&sizes)
	err := g.eachRow(name, func(t tensor.Tensor) { values.add(t.Float64s()) })
	return values, err
}

// eachRow calls do with an output of each case.
func (g goldenSet) eachRow(name string, do func(tensor.Tensor)) error {
	for i, file := range g.files {
		f, err := tensor.Open(file.Path, tensor.Limits{})
		if err != nil {
			return cases.TensorError(err)
		}
		for row := int64(0); row < int64(g.set.Shards[i].Count) && err == nil; row++ {
			var t tensor.Tensor
			if t, err = f.Rows(name, row, row+1); err == nil {
				do(t)
			}
		}
		if err = errors.Join(err, f.Close()); err != nil {
			return cases.TensorError(err)
		}
	}
	return nil
}

// readOutput reads an output of all cases of a shard.
func readOutput(path, name string) (t tensor.Tensor, err error) {
	f, err := tensor.Open(path, tensor.Limits{})
	if err != nil {
		return t, cases.TensorError(err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if t, err = f.Tensor(name); err != nil {
		return t, cases.TensorError(err)
	}
	return t, nil
}
