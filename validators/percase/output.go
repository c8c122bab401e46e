package percase

import (
	"fmt"
	"math"

	"mlpromote.dev/mlpromote/validators/accuracy"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// An outputFigure is a column of the figures of an output: of numbers, or of counts.
type outputFigure struct {
	name  string
	at    func(*tensor.CaseFigures) *float64
	count func(*tensor.CaseFigures) *int64
	// optional figures are left out of files that would be too large.
	optional bool
}

var outputFigures = []outputFigure{
	{name: "failed", count: func(f *tensor.CaseFigures) *int64 { return &f.Failed }},
	{name: "maxAbs", at: func(f *tensor.CaseFigures) *float64 { return &f.MaxAbs }},
	{name: "cosine", at: func(f *tensor.CaseFigures) *float64 { return &f.Cosine }},
	{name: "caseError", at: func(f *tensor.CaseFigures) *float64 { return &f.Error }},
	{name: "equalMisses", at: func(f *tensor.CaseFigures) *float64 { return &f.Equal }},
	{name: "top1Misses", at: func(f *tensor.CaseFigures) *float64 { return &f.Top1 }},
	{name: "elements", count: func(f *tensor.CaseFigures) *int64 { return &f.Elements }, optional: true},
	{name: "mean", at: func(f *tensor.CaseFigures) *float64 { return &f.Mean }, optional: true},
	{name: "deviation", at: func(f *tensor.CaseFigures) *float64 { return &f.Deviation }, optional: true},
	{name: "rms", at: func(f *tensor.CaseFigures) *float64 { return &f.RMS }, optional: true},
	{name: "rmse", at: func(f *tensor.CaseFigures) *float64 { return &f.RMSE }, optional: true},
}

// required are the figures that every file has.
func required() (all []outputFigure) {
	for _, o := range outputFigures {
		if !o.optional {
			all = append(all, o)
		}
	}
	return all
}

func (o outputFigure) write(each []tensor.CaseFigures) (tensor.Tensor, error) {
	if o.count != nil {
		return column(each, o.count)
	}
	return column(each, o.at)
}

func column[T tensor.Scalar](each []tensor.CaseFigures, at func(*tensor.CaseFigures) *T) (tensor.Tensor, error) {
	values := make([]T, len(each))
	for i := range each {
		values[i] = *at(&each[i])
	}
	return tensor.New(values, int64(len(values)))
}

// readOutput reads the figures of an output.
func readOutput(columns accuracy.Columns) ([]tensor.CaseFigures, error) {
	failed, err := tensor.Values[int64](columns[outputFigures[0].name])
	if err != nil {
		return nil, err
	}
	each := make([]tensor.CaseFigures, len(failed))
	for _, figure := range outputFigures {
		if err := figure.read(columns, each); err != nil {
			return nil, err
		}
	}
	return each, nil
}

// read reads the column into the figures of each case. A figure that was left out is NaN, and a count 0.
func (o outputFigure) read(columns accuracy.Columns, each []tensor.CaseFigures) error {
	of, ok := columns[o.name]
	switch {
	case !ok && !o.optional:
		return fmt.Errorf("there is no %s", o.name)
	case !ok && o.at != nil:
		for i := range each {
			*o.at(&each[i]) = math.NaN()
		}
		return nil
	case !ok:
		return nil
	case o.at != nil:
		return fill(o, of, each, o.at)
	}
	if err := fill(o, of, each, o.count); err != nil {
		return err
	}
	for i := range each {
		if n := *o.count(&each[i]); n < 0 {
			return fmt.Errorf("%s of case %d is %d: want no less than 0", o.name, i, n)
		}
	}
	return nil
}

func fill[T tensor.Scalar](o outputFigure, of tensor.Tensor, each []tensor.CaseFigures, at func(*tensor.CaseFigures) *T) error {
	values, err := tensor.Values[T](of)
	if err != nil {
		return err
	}
	if len(values) != len(each) {
		return fmt.Errorf("%s has %d cases: want %d as %s", o.name, len(values), len(each), outputFigures[0].name)
	}
	for i, v := range values {
		*at(&each[i]) = v
	}
	return nil
}
