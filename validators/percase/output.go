package percase

import (
	"fmt"

	"mlpromote.dev/mlpromote/validators/accuracy"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// An outputFigure is a column of the figures of an output.
type outputFigure struct {
	name string
	at   func(*tensor.CaseFigures) *float64 // nil: the number of elements that failed
}

var outputFigures = []outputFigure{
	{"failed", nil},
	{"maxAbs", func(f *tensor.CaseFigures) *float64 { return &f.MaxAbs }},
	{"cosine", func(f *tensor.CaseFigures) *float64 { return &f.Cosine }},
	{"caseError", func(f *tensor.CaseFigures) *float64 { return &f.Error }},
	{"equalMisses", func(f *tensor.CaseFigures) *float64 { return &f.Equal }},
	{"top1Misses", func(f *tensor.CaseFigures) *float64 { return &f.Top1 }},
}

func (o outputFigure) write(each []tensor.CaseFigures) (tensor.Tensor, error) {
	if o.at == nil {
		failed := make([]int64, len(each))
		for i := range each {
			failed[i] = each[i].Failed
		}
		return tensor.New(failed, int64(len(failed)))
	}
	values := make([]float64, len(each))
	for i := range each {
		values[i] = *o.at(&each[i])
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
	for i, n := range failed {
		if n < 0 {
			return nil, fmt.Errorf("case %d has %d elements that failed", i, n)
		}
		each[i].Failed = n
	}
	for _, figure := range outputFigures[1:] {
		column, ok := columns[figure.name]
		if !ok {
			return nil, fmt.Errorf("there is no %s", figure.name)
		}
		values, err := tensor.Values[float64](column)
		if err != nil {
			return nil, err
		}
		if len(values) != len(each) {
			return nil, fmt.Errorf("%s has %d cases: want %d as %s", figure.name, len(values), len(each), outputFigures[0].name)
		}
		for i, v := range values {
			*figure.at(&each[i]) = v
		}
	}
	return each, nil
}
