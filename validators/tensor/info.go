package tensor

import (
	"math"
	"slices"
)

// Info is a tensor without its data.
type Info struct {
	DType DType
	// Shape lists the dimensions, the slowest first; empty for a scalar.
	Shape []int64
}

// Len returns the number of elements: 1 for a scalar, 0 if a dimension is 0. The dtype must be
// known, no dimension may be negative, and the product of all dimensions except zeros must fit
// an int64 in bytes, so that no view overflows.
func (i Info) Len() (int64, error) {
	if !i.DType.Valid() {
		return 0, Errorf(ErrUnsupported, "unknown dtype %.64q: expected one of %s", string(i.DType), dtypeNames)
	}
	n, empty := int64(1), false
	for axis, dim := range i.Shape {
		switch {
		case dim < 0:
			return 0, Errorf(ErrMalformed, "shape %v: dimension %d is negative", i.Shape, axis)
		case dim == 0:
			empty = true
		case n > math.MaxInt64/int64(i.DType.Size())/dim:
			return 0, Errorf(ErrMalformed, "shape %v of %s: its size overflows 64 bits", i.Shape, i.DType)
		default:
			n *= dim
		}
	}
	if empty {
		return 0, nil
	}
	return n, nil
}

// Bytes returns the size of the data, under the same conditions as Len.
func (i Info) Bytes() (int64, error) {
	n, err := i.Len()
	return n * int64(i.DType.Size()), err
}

// Rows returns the Info of the rows [from, to) and the bytes of one row.
func (i Info) Rows(from, to int64) (Info, int64, error) {
	if len(i.Shape) == 0 {
		return Info{}, 0, Errorf(ErrMismatch, "rows of a scalar: a leading dimension is needed")
	}
	if from < 0 || to < from || to > i.Shape[0] {
		return Info{}, 0, Errorf(ErrMismatch,
			"rows [%d, %d) of shape %v: the leading dimension has %d", from, to, i.Shape, i.Shape[0])
	}
	stride, err := Info{i.DType, i.Shape[1:]}.Bytes()
	if err != nil {
		return Info{}, 0, err
	}
	shape := slices.Clone(i.Shape)
	shape[0] = to - from
	return Info{i.DType, shape}, stride, nil
}
