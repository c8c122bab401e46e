// Package tensortest draws and compares tensors for tests.
package tensortest

import (
	"errors"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"mlpromote.dev/mlpromote/validators/tensor"
)

// DTypes are all dtypes.
var DTypes = []tensor.DType{
	tensor.Bool, tensor.Int8, tensor.Int16, tensor.Int32, tensor.Int64,
	tensor.Uint8, tensor.Uint16, tensor.Uint32, tensor.Uint64,
	tensor.Float8E4M3, tensor.Float8E5M2, tensor.Float16, tensor.BFloat16, tensor.Float32, tensor.Float64,
}

// WantKind expects an error of a kind.
func WantKind(t *testing.T, err, kind error) {
	t.Helper()
	if !errors.Is(err, kind) {
		t.Errorf("got error %v, want one of kind %q", err, kind)
	}
}

// Draw draws any dtype, up to three dimensions, any bytes.
func Draw(t *rapid.T, label string) tensor.Tensor {
	d := rapid.SampledFrom(DTypes).Draw(t, label+" dtype")
	shape := rapid.SliceOfN(rapid.Int64Range(0, 4), 0, 3).Draw(t, label+" shape")
	n := int(Must(tensor.Info{DType: d, Shape: shape}.Bytes()))
	return tensor.Tensor{DType: d, Shape: shape, Data: rapid.SliceOfN(rapid.Byte(), n, n).Draw(t, label+" data")}
}

// Equal compares dtype, shape and bytes.
func Equal(a, b tensor.Tensor) bool {
	return a.DType == b.DType && slices.Equal(a.Shape, b.Shape) && slices.Equal(a.Data, b.Data)
}

// Must returns v, and panics at an error.
func Must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
