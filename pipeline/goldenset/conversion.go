package goldenset

import (
	"errors"
	"fmt"

	"mlpromote.dev/mlpromote/pipeline/cases"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/tensor"
	"mlpromote.dev/mlpromote/validators/tensor/tensorfile"
)

// ConversionText describes the answers that a conversion changes; empty for none.
func ConversionText(golden artifact.CaseSet, kind string) string {
	c := golden.Conversion
	if c == nil || c.Answers == 0 {
		return ""
	}
	return fmt.Sprintf("engines take the inputs with fewer digits than the cases have, and with those %s itself answers %d of %s otherwise (%.3g %%): "+
		"no engine can do better; train the model on float32, such as with times that count from a later day, or allow it in limits",
		kind, c.Answers, registry.Count(golden.Count, "case"), 100*float64(c.Answers)/float64(golden.Count))
}

// Answering are the outputs whose values are the answers of a model: the one with an answer for each case, or all.
func Answering(iface validators.Interface) []validators.TensorInfo {
	if name, ok := iface.ScoredOutput(false); ok {
		output, _ := iface.Output(name)
		return []validators.TensorInfo{output}
	}
	return iface.Outputs
}

// OtherAnswers notes the cases whose answers differ in an output: the number or the index of the largest score, or a value by more
// than a tolerance.
func (g Set) OtherAnswers(second Set, output validators.TensorInfo, allowed Tolerance, differ map[int]bool) error {
	values, err := g.RangeOf(output.Name)
	if err != nil {
		return err
	}
	for i, shard := range g.Set.Shards {
		first, err := readOutput(g.Files[i].Path, output.Name)
		if err != nil {
			return err
		}
		other, err := readOutput(second.Files[i].Path, output.Name)
		if err != nil {
			return err
		}
		comparison := tensor.NewComparison(allowed.Options(first.DType, values.size()))
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
			if of.Failed > 0 && (!output.Ranks() || first.DType.Class() != tensor.ClassFloat || of.Top1 > 0) {
				differ[shard.First+row] = true
			}
		}
	}
	return nil
}

// RangeOf is the range of an output's values, without fill values.
func (g Set) RangeOf(name string) (ValueRange, error) {
	var sizes tensor.Magnitudes
	if err := g.eachRow(name, sizes.Add); err != nil {
		return ValueRange{}, err
	}
	values := newValueRange(&sizes)
	err := g.eachRow(name, func(t tensor.Tensor) { values.add(t.Float64s()) })
	return values, err
}

// eachRow calls do with an output of each case.
func (g Set) eachRow(name string, do func(tensor.Tensor)) error {
	for i, file := range g.Files {
		f, err := tensorfile.Open(file.Path, tensorfile.Limits{})
		if err != nil {
			return cases.TensorError(err)
		}
		for row := int64(0); row < int64(g.Set.Shards[i].Count) && err == nil; row++ {
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
	f, err := tensorfile.Open(path, tensorfile.Limits{})
	if err != nil {
		return t, cases.TensorError(err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if t, err = f.Tensor(name); err != nil {
		return t, cases.TensorError(err)
	}
	return t, nil
}
