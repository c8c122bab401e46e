package tensor

import "encoding/binary"

// Scalar lists the Go types of tensor elements.
type Scalar interface {
	bool | int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64 | float32 | float64
}

// New returns a tensor with a copy of values, in C order. Without dimensions it is a scalar. If
// the number of values does not match shape, it returns an error.
func New[T Scalar](values []T, shape ...int64) (Tensor, error) {
	t := Tensor{DType: dtypeOf[T](), Shape: append([]int64{}, shape...)}
	data, err := binary.Append(nil, binary.LittleEndian, values)
	if err != nil {
		return Tensor{}, err
	}
	t.Data = data
	return t, t.Validate()
}

// Values returns a copy of the elements, in C order. T must be exactly the type of t's dtype:
// it converts nothing (kind ErrMismatch). Float64s converts.
func Values[T Scalar](t Tensor) ([]T, error) {
	if err := t.Validate(); err != nil {
		return nil, err
	}
	if want := dtypeOf[T](); t.DType != want {
		return nil, Errorf(ErrMismatch, "values of a %s tensor: expected %s", t.DType, want)
	}
	values := make([]T, t.Len())
	_, err := binary.Decode(t.Data, binary.LittleEndian, values)
	return values, err
}

func dtypeOf[T Scalar]() DType {
	switch any(*new(T)).(type) {
	case bool:
		return Bool
	case int8:
		return Int8
	case int16:
		return Int16
	case int32:
		return Int32
	case int64:
		return Int64
	case uint8:
		return Uint8
	case uint16:
		return Uint16
	case uint32:
		return Uint32
	case uint64:
		return Uint64
	case float32:
		return Float32
	}
	return Float64
}
