package goldenset

import (
	"errors"
	"math"

	"mlpromote.dev/mlpromote/pipeline/cases"
	"mlpromote.dev/mlpromote/pipeline/run"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/validators/tensor"
	"mlpromote.dev/mlpromote/validators/tensor/tensorfile"
)

// Compare compares golden outputs with the evaluator's outputs, for the first cases of the sample, which it ran, and notes the
// worst element of all outputs.
func (g *Set) Compare(outcome toolchain.Outcome, sample []int, allowed Tolerance) error {
	result, err := readEvaluatorResult(outcome, len(sample))
	if err != nil {
		return err
	}
	g.CrossCheck.By = EvaluatorName + " " + result.Evaluator
	g.CrossCheck.Cases, g.CrossCheck.Missing, g.CrossCheck.Reason = result.Cases, result.Missing, result.Reason
	if result.Cases == 0 {
		return nil
	}
	pairs := Pairs{Golden: g, Outcome: outcome, Sample: sample[:result.Cases]}
	names, err := pairs.Names()
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := pairs.compare(name, allowed, &g.CrossCheck); err != nil {
			return registry.Errorf(registry.CodeOf(err), "cross-check the reference: output %q: %w", name, err)
		}
	}
	return nil
}

// Pairs are golden outputs and the evaluator's, case by case.
type Pairs struct {
	Golden  *Set
	Outcome toolchain.Outcome
	Sample  []int
}

// Names lists the golden outputs.
func (p Pairs) Names() ([]string, error) {
	f, err := tensorfile.Open(p.Golden.Files[0].Path, tensorfile.Limits{})
	if err != nil {
		return nil, cases.TensorError(err)
	}
	defer f.Close()
	return f.Names(), nil
}

// GoldenRow reads one output of a case.
func (p Pairs) GoldenRow(name string, number int) (tensor.Tensor, error) {
	i := ShardOf(p.Golden.Set.Shards, number)
	row := int64(number - p.Golden.Set.Shards[i].First)
	return ReadRow(p.Golden.Files[i].Path, name, row)
}

// ReadRow reads one row of a tensor in a file.
func ReadRow(path, name string, row int64) (tensor.Tensor, error) {
	f, err := tensorfile.Open(path, tensorfile.Limits{})
	if err != nil {
		return tensor.Tensor{}, cases.TensorError(err)
	}
	defer f.Close()
	t, err := f.Rows(name, row, row+1)
	if err != nil {
		return tensor.Tensor{}, cases.TensorError(err)
	}
	return t, nil
}

// ReadTensor reads a tensor of a file.
func ReadTensor(path, name string) (t tensor.Tensor, err error) {
	f, err := tensorfile.Open(path, tensorfile.Limits{})
	if err != nil {
		return t, cases.TensorError(err)
	}
	defer f.Close()
	if t, err = f.Tensor(name); err != nil {
		return t, cases.TensorError(err)
	}
	return t, nil
}

// compare compares one output in all cases.
func (p Pairs) compare(name string, allowed Tolerance, to *evidence.CrossCheck) error {
	dtype, values, err := p.values(name)
	if err != nil {
		return err
	}
	options := allowed.Options(dtype, values)
	comparison := tensor.NewComparison(options)
	for i, number := range p.Sample {
		golden, err := p.GoldenRow(name, number)
		if err != nil {
			return err
		}
		file, ok := p.Outcome.File("outputs/" + run.ReferenceID + "/" + CaseFile(i))
		if !ok {
			return registry.Errorf(registry.CodeInternal, "the %s left no outputs of case %d", EvaluatorName, number)
		}
		evaluated, err := ReadRow(file.Path, name, 0)
		if err == nil {
			err = comparison.Add(number, golden, evaluated)
		}
		switch {
		case errors.Is(err, tensor.ErrMismatch):
			to.Worst = otherShape(name, number)
			to.Reason = err.Error()
			return nil
		case err != nil:
			return err
		}
	}
	noteWorst(to, name, comparison.Result().Worst, options)
	return nil
}

// values are the type of an output and the size of its range, without fill values.
func (p Pairs) values(name string) (dtype tensor.DType, size float64, err error) {
	each := func(do func(tensor.Tensor)) error {
		for _, number := range p.Sample {
			t, err := p.GoldenRow(name, number)
			if err != nil {
				return err
			}
			do(t)
		}
		return nil
	}
	var sizes tensor.Magnitudes
	if err := each(sizes.Add); err != nil {
		return "", 0, err
	}
	values := newValueRange(&sizes)
	err = each(func(t tensor.Tensor) {
		dtype = t.DType
		values.add(t.Float64s())
	})
	return dtype, values.size(), err
}

// otherShape stands for an output of another shape or type, which no element describes: its
// Index is nil.
func otherShape(name string, number int) *evidence.CrossCheckElement {
	nan := evidence.Figure(math.NaN())
	return &evidence.CrossCheckElement{Output: name, Case: number, Golden: nan, Evaluator: nan, Share: evidence.Figure(math.Inf(1))}
}

// noteWorst keeps the worst element of all outputs.
func noteWorst(to *evidence.CrossCheck, name string, worst *tensor.Element, options tensor.Options) {
	if worst == nil {
		return
	}
	found := evidence.CrossCheckElement{Output: name, Case: worst.Case, Index: worst.Index[1:],
		Golden: evidence.Figure(worst.Reference), Evaluator: evidence.Figure(worst.Engine), Share: share(*worst, options)}
	if to.Worst == nil || found.Share > to.Worst.Share {
		to.Worst = &found
	}
}

// share is the difference of an element divided by its tolerance; infinite without a finite
// difference, and for any difference where none is allowed.
func share(e tensor.Element, options tensor.Options) evidence.Figure {
	allowed := options.ATol + options.RTol*math.Abs(e.Reference)
	difference := math.Abs(e.Engine - e.Reference)
	if !(difference <= math.MaxFloat64) || allowed == 0 {
		return evidence.Figure(math.Inf(1))
	}
	return evidence.Figure(difference / allowed)
}

// ValueRange is the smallest and the largest value of a magnitude below one.
type ValueRange struct{ Low, High, below float64 }

func newValueRange(sizes *tensor.Magnitudes) ValueRange {
	return ValueRange{Low: math.Inf(1), High: math.Inf(-1), below: min(sizes.Fill(tensor.FillsNear), math.MaxFloat64/2)}
}

func (r *ValueRange) add(values []float64) {
	for _, v := range values {
		if math.Abs(v) < r.below {
			r.Low, r.High = min(r.Low, v), max(r.High, v)
		}
	}
}

func (r ValueRange) size() float64 { return max(0, r.High-r.Low) }
