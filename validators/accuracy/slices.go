package accuracy

import (
	"maps"
	"slices"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// MaxSlices is how many slices cases can be cut into.
const MaxSlices = 64

// Slice is the accuracy on the cases that have one value in a column.
type Slice struct {
	Value    int64
	Accuracy evidence.Accuracy
	Figures  *Figures // nil for a rate of cases
}

// SliceOf reads the slice of each of count cases: integers or booleans of shape [cases] or [cases, 1].
func SliceOf(t tensor.Tensor, count int) ([]int64, error) {
	if t.DType.Class() == tensor.ClassFloat {
		return nil, mismatchf("dtype is %s: want integers or booleans, the number of a slice for each case", t.DType)
	}
	if len(t.Shape) == 0 || t.Shape[0] != int64(count) || t.Len() != count {
		return nil, mismatchf("shape is %v: want %d, the number of a slice for each case", t.Shape, count)
	}
	values := make([]int64, count)
	for i, v := range integers(t).Float64s() {
		values[i] = int64(v)
	}
	return values, nil
}

// Slices returns the accuracy on each slice, in ascending order of their values. of has the slice of
// each case in the order in which cases were added. Errors: CodeInvalid for more than [MaxSlices].
func (c *Counter) Slices(of []int64) ([]Slice, error) {
	cases := make(map[int64][]int)
	for i, value := range of {
		cases[value] = append(cases[value], i)
	}
	if len(cases) > MaxSlices {
		return nil, registry.Errorf(registry.CodeInvalid, "%d slices: want at most %d", len(cases), MaxSlices)
	}
	var all []Slice
	for _, value := range slices.Sorted(maps.Keys(cases)) {
		s := Slice{Value: value, Figures: c.figuresOf(cases[value])}
		if s.Figures != nil {
			s.Accuracy = s.Figures.Accuracy()
		} else {
			s.Accuracy = c.rateOf(cases[value])
		}
		all = append(all, s)
	}
	return all, nil
}
