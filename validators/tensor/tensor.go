package tensor

import "slices"

// Tensor is an n-dimensional array. Its zero value is invalid. Tensors may share Data with each
// other: treat Data as read-only unless you created it.
type Tensor struct {
	DType DType
	// Shape lists the dimensions, the slowest first; empty for a scalar.
	Shape []int64
	// Data holds the elements in C order, little-endian. A bool is one byte; any value other
	// than 0 is true.
	Data []byte
}

// Info returns the tensor's dtype and shape.
func (t Tensor) Info() Info { return Info{t.DType, t.Shape} }

// Validate checks that dtype, shape and data are consistent (kinds ErrUnsupported and
// ErrMalformed). The other methods of Tensor expect a valid tensor; on an invalid one they
// return errors or zeros, and panic only for an index out of range.
func (t Tensor) Validate() error {
	want, err := t.Info().Bytes()
	if err != nil {
		return err
	}
	if int64(len(t.Data)) != want {
		return Errorf(ErrMalformed,
			"%s tensor of shape %v has %d bytes of data: expected %d", t.DType, t.Shape, len(t.Data), want)
	}
	return nil
}

// Len returns the number of elements in Data, or 0 for an unknown dtype.
func (t Tensor) Len() int {
	if size := t.DType.Size(); size != 0 {
		return len(t.Data) / size
	}
	return 0
}

// Rows returns the rows [from, to) along the leading dimension, which stays. The result is a
// view that shares Data.
func (t Tensor) Rows(from, to int64) (Tensor, error) {
	if err := t.Validate(); err != nil {
		return Tensor{}, err
	}
	info, stride, err := t.Info().Rows(from, to)
	if err != nil {
		return Tensor{}, err
	}
	lo, hi := from*stride, to*stride
	return Tensor{info.DType, info.Shape, t.Data[lo:hi:hi]}, nil
}

// Slice returns row i without the leading dimension, as a view. For cases stacked to shape
// [cases, ...], that is the tensor of one case.
func (t Tensor) Slice(i int64) (Tensor, error) {
	if len(t.Shape) > 0 && (i < 0 || i >= t.Shape[0]) {
		return Tensor{}, Errorf(ErrMismatch, "row %d of shape %v: the leading dimension has %d", i, t.Shape, t.Shape[0])
	}
	row, err := t.Rows(i, i+1)
	if err != nil {
		return Tensor{}, err
	}
	row.Shape = row.Shape[1:]
	return row, nil
}

// Stack returns a new tensor [len(ts), ...] of tensors with the same dtype and shape, in their
// order. It needs at least one.
func Stack(ts ...Tensor) (Tensor, error) {
	rows := make([]Tensor, len(ts))
	for i, t := range ts {
		rows[i] = Tensor{t.DType, append([]int64{1}, t.Shape...), t.Data}
	}
	return Concat(rows...)
}

// Concat returns a new tensor of the rows of all ts, in their order. All must have the same
// dtype and the same dimensions except the leading one. It needs at least one.
func Concat(ts ...Tensor) (Tensor, error) {
	if len(ts) == 0 || len(ts[0].Shape) == 0 {
		return Tensor{}, Errorf(ErrMismatch, "concat: expected one tensor or more, with a leading dimension")
	}
	first := ts[0]
	out := Tensor{DType: first.DType, Shape: slices.Clone(first.Shape)}
	out.Shape[0] = 0
	var parts [][]byte
	for i, t := range ts {
		if err := t.Validate(); err != nil {
			return Tensor{}, err
		}
		if t.DType != first.DType || len(t.Shape) == 0 || !slices.Equal(t.Shape[1:], first.Shape[1:]) {
			return Tensor{}, Errorf(ErrMismatch,
				"concat: tensor %d is %s %v, the first is %s %v: only the leading dimension may differ",
				i, t.DType, t.Shape, first.DType, first.Shape)
		}
		if out.Shape[0] += t.Shape[0]; out.Shape[0] < 0 {
			return Tensor{}, Errorf(ErrMalformed, "concat: the leading dimension overflows 64 bits")
		}
		parts = append(parts, t.Data)
	}
	out.Data = slices.Concat(parts...)
	return out, out.Validate()
}
