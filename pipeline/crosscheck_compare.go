package pipeline

import (
	"errors"
	"math"

	"mlpromote.dev/mlpromote/pipeline/cases"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators/format"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// crossCheckTolerance is how far a golden output may be from the evaluator's: ofRange times the
// range of the golden output's values in the cross-checked cases, of which infinities and fill values are left out, plus
// rtol times the size of the element.
// Integers and booleans must be equal, unless a rounding within the graph can go either way.
type crossCheckTolerance struct {
	ofRange, rtol float64
	rounded       bool // integers of 8 bits may differ by ofRange of their range, and by 1
}

// Tolerances. Sums of float32 in another order differ by some 1e-6 of the range in deep models;
// what a wrong operator does is far more. Half precision keeps 11 bits, and the runtime may keep
// more within the graph. In a graph that rounds to 8 bits, the last bit of a sum decides which
// of two steps an activation takes.
var (
	crossCheckFloat32   = crossCheckTolerance{ofRange: 1e-3, rtol: 1e-4}
	crossCheckHalf      = crossCheckTolerance{ofRange: 2e-2, rtol: 1e-2}
	crossCheckQuantized = crossCheckTolerance{ofRange: 1e-1, rtol: 1e-2, rounded: true}
)

// crossCheckFloor is the absolute tolerance of outputs without any range, such as one number of one case.
const crossCheckFloor = 1e-6

// tolerance is that for the source.
func (m maker) tolerance() crossCheckTolerance {
	return toleranceOf(m.inputs.Quantized != "", m.inputs.imported.source.model)
}

// toleranceOf is that for a model; nil for one that is not read.
func toleranceOf(quantized bool, model *format.Model) crossCheckTolerance {
	switch {
	case quantized:
		return crossCheckQuantized
	case model != nil && model.Tensors["float16"]+model.Tensors["bfloat16"] > 0:
		return crossCheckHalf
	}
	return crossCheckFloat32
}

// options are the tolerances of an output with a range of values.
func (t crossCheckTolerance) options(dtype tensor.DType, values float64) tensor.Options {
	switch {
	case dtype == tensor.Float16 || dtype == tensor.BFloat16:
		t = crossCheckTolerance{max(t.ofRange, crossCheckHalf.ofRange), max(t.rtol, crossCheckHalf.rtol), t.rounded}
	case dtype.Class() == tensor.ClassFloat:
	case t.rounded && dtype.Size() == 1 && dtype.Class() == tensor.ClassInteger:
		return tensor.Options{ATol: max(1, t.ofRange*values)}
	default:
		return tensor.Options{}
	}
	return tensor.Options{RTol: t.rtol, ATol: max(crossCheckFloor, t.ofRange*values)}
}

// compare compares the golden outputs of the cases that the evaluator ran, the first ones of the
// sample, with what it left, and notes the worst element of all outputs.
func (g *goldenSet) compare(outcome toolchain.Outcome, sample []int, allowed crossCheckTolerance) error {
	result, err := readEvaluatorResult(outcome, len(sample))
	if err != nil {
		return err
	}
	g.crossCheck.By = evaluatorName + " " + result.Evaluator
	g.crossCheck.Cases, g.crossCheck.Missing, g.crossCheck.Reason = result.Cases, result.Missing, result.Reason
	if result.Cases == 0 {
		return nil
	}
	pairs := crossCheckPairs{golden: g, outcome: outcome, sample: sample[:result.Cases]}
	names, err := pairs.names()
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := pairs.compare(name, allowed, &g.crossCheck); err != nil {
			return registry.Errorf(registry.CodeOf(err), "cross-check the reference: output %q: %w", name, err)
		}
	}
	return nil
}

// crossCheckPairs are golden outputs and the evaluator's, case by case.
type crossCheckPairs struct {
	golden  *goldenSet
	outcome toolchain.Outcome
	sample  []int
}

// names are those of the golden outputs.
func (p crossCheckPairs) names() ([]string, error) {
	f, err := tensor.Open(p.golden.files[0].Path, tensor.Limits{})
	if err != nil {
		return nil, cases.TensorError(err)
	}
	defer f.Close()
	return f.Names(), nil
}

// goldenRow reads one output of a case.
func (p crossCheckPairs) goldenRow(name string, number int) (tensor.Tensor, error) {
	i := shardOf(p.golden.set.Shards, number)
	row := int64(number - p.golden.set.Shards[i].First)
	return readRow(p.golden.files[i].Path, name, row)
}

func readRow(path, name string, row int64) (tensor.Tensor, error) {
	f, err := tensor.Open(path, tensor.Limits{})
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

// compare compares one output in all cases.
func (p crossCheckPairs) compare(name string, allowed crossCheckTolerance, to *registry.CrossCheck) error {
	dtype, values, err := p.values(name)
	if err != nil {
		return err
	}
	options := allowed.options(dtype, values)
	comparison := tensor.NewComparison(options)
	for i, number := range p.sample {
		golden, err := p.goldenRow(name, number)
		if err != nil {
			return err
		}
		file, ok := p.outcome.File("outputs/" + referenceID + "/" + crossCheckFile(i))
		if !ok {
			return registry.Errorf(registry.CodeInternal, "the %s left no outputs of case %d", evaluatorName, number)
		}
		evaluated, err := readRow(file.Path, name, 0)
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
func (p crossCheckPairs) values(name string) (dtype tensor.DType, size float64, err error) {
	each := func(do func(tensor.Tensor)) error {
		for _, number := range p.sample {
			t, err := p.goldenRow(name, number)
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
func otherShape(name string, number int) *registry.CrossCheckElement {
	nan := registry.Figure(math.NaN())
	return &registry.CrossCheckElement{Output: name, Case: number, Golden: nan, Evaluator: nan, Share: registry.Figure(math.Inf(1))}
}

// noteWorst keeps the worst element of all outputs.
func noteWorst(to *registry.CrossCheck, name string, worst *tensor.Element, options tensor.Options) {
	if worst == nil {
		return
	}
	found := registry.CrossCheckElement{Output: name, Case: worst.Case, Index: worst.Index[1:],
		Golden: registry.Figure(worst.Reference), Evaluator: registry.Figure(worst.Engine), Share: share(*worst, options)}
	if to.Worst == nil || found.Share > to.Worst.Share {
		to.Worst = &found
	}
}

// share is the difference of an element divided by its tolerance; infinite without a finite
// difference, and for any difference where none is allowed.
func share(e tensor.Element, options tensor.Options) registry.Figure {
	allowed := options.ATol + options.RTol*math.Abs(e.Reference)
	difference := math.Abs(e.Engine - e.Reference)
	if !(difference <= math.MaxFloat64) || allowed == 0 {
		return registry.Figure(math.Inf(1))
	}
	return registry.Figure(difference / allowed)
}

// valueRange is the smallest and the largest value of a magnitude below one.
type valueRange struct{ low, high, below float64 }

func newValueRange(sizes *tensor.Magnitudes) valueRange {
	return valueRange{low: math.Inf(1), high: math.Inf(-1), below: min(sizes.Fill(tensor.FillsNear), math.MaxFloat64/2)}
}

func (r *valueRange) add(values []float64) {
	for _, v := range values {
		if math.Abs(v) < r.below {
			r.low, r.high = min(r.low, v), max(r.high, v)
		}
	}
}

func (r valueRange) size() float64 { return max(0, r.high-r.low) }
