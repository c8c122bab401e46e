package tensor_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"mlpromote.dev/mlpromote/validators/tensor"
	"mlpromote.dev/mlpromote/validators/tensor/tensortest"
)

func TestDTypeNames(t *testing.T) {
	t.Parallel()
	for _, d := range tensortest.DTypes {
		if got, err := tensor.ParseDType(string(d)); got != d || err != nil {
			t.Errorf("ParseDType(%q) = %q, %v", d, got, err)
		}
		if got, err := tensor.FromSafetensors(d.Safetensors()); got != d || err != nil {
			t.Errorf("FromSafetensors(%q) = %q, %v, want %q", d.Safetensors(), got, err, d)
		}
		if d.Size() == 0 || d.Class() == "" {
			t.Errorf("%s: size %d, class %q", d, d.Size(), d.Class())
		}
	}
	for _, name := range []string{"", "F32", "Float32", "float", "complex64", "object"} {
		_, err := tensor.ParseDType(name)
		tensortest.WantKind(t, err, tensor.ErrUnsupported)
	}
	for _, name := range []string{"", "f32", "C64", "F4", "F8_E8M0", "F8_E4M3FNUZ"} {
		_, err := tensor.FromSafetensors(name)
		tensortest.WantKind(t, err, tensor.ErrUnsupported)
	}
}

func TestValidate(t *testing.T) {
	t.Parallel()
	const big = 1 << 40
	cases := []struct {
		name  string
		t     tensor.Tensor
		kind  error
		valid bool
	}{
		{name: "zero value", t: tensor.Tensor{}, kind: tensor.ErrUnsupported},
		{name: "scalar", t: tensor.Tensor{DType: tensor.Int16, Data: make([]byte, 2)}, valid: true},
		{name: "empty", t: tensor.Tensor{DType: tensor.Int16, Shape: []int64{0, 7}}, valid: true},
		{name: "short", t: tensor.Tensor{DType: tensor.Int16, Shape: []int64{2}, Data: make([]byte, 3)}, kind: tensor.ErrMalformed},
		{name: "negative", t: tensor.Tensor{DType: tensor.Int8, Shape: []int64{-1, -1}, Data: make([]byte, 1)}, kind: tensor.ErrMalformed},
		{name: "overflow", t: tensor.Tensor{DType: tensor.Int8, Shape: []int64{big, big}}, kind: tensor.ErrMalformed},
		{name: "overflow in bytes", t: tensor.Tensor{DType: tensor.Int64, Shape: []int64{math.MaxInt64 / 4}}, kind: tensor.ErrMalformed},
		{name: "overflow beside zero", t: tensor.Tensor{DType: tensor.Int8, Shape: []int64{0, big, big}}, kind: tensor.ErrMalformed},
	}
	for _, c := range cases {
		err := c.t.Validate()
		if c.valid && err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if !c.valid && !errors.Is(err, c.kind) {
			t.Errorf("%s: got %v, want kind %q", c.name, err, c.kind)
		}
	}
}

func TestRowsAreViews(t *testing.T) {
	t.Parallel()
	whole := tensortest.Must(tensor.New([]int32{0, 1, 2, 3, 4, 5}, 3, 2))
	rows := tensortest.Must(whole.Rows(1, 3))
	whole.Data[8] = 42
	if got := tensortest.Must(tensor.Values[int32](rows)); !slices.Equal(got, []int32{42, 3, 4, 5}) || !slices.Equal(rows.Shape, []int64{2, 2}) {
		t.Errorf("Rows(1, 3) = %v %v", rows.Shape, got)
	}
	row := tensortest.Must(whole.Slice(2))
	if got := row.Float64s(); !slices.Equal(got, []float64{4, 5}) || !slices.Equal(row.Shape, []int64{2}) {
		t.Errorf("Slice(2) = %v %v", row.Shape, got)
	}
	first := tensortest.Must(whole.Rows(0, 1))
	_ = append(first.Data, 0xff)
	if whole.Data[8] != 42 {
		t.Error("append to a view wrote into the next row")
	}
}

func TestRowsOutOfRange(t *testing.T) {
	t.Parallel()
	whole := tensortest.Must(tensor.New([]int32{0, 1, 2, 3}, 2, 2))
	for _, r := range [][2]int64{{-1, 1}, {1, 0}, {0, 3}, {math.MaxInt64, math.MinInt64}} {
		_, err := whole.Rows(r[0], r[1])
		tensortest.WantKind(t, err, tensor.ErrMismatch)
	}
	for _, i := range []int64{-1, 2, math.MaxInt64} {
		_, err := whole.Slice(i)
		tensortest.WantKind(t, err, tensor.ErrMismatch)
	}
	_, err := tensortest.Must(tensor.New([]int32{7})).Slice(0)
	tensortest.WantKind(t, err, tensor.ErrMismatch)
}

func TestStackAndConcatRefuse(t *testing.T) {
	t.Parallel()
	a, b := tensortest.Must(tensor.New([]int32{1, 2}, 2)), tensortest.Must(tensor.New([]int32{1, 2, 3}, 3))
	c, scalar := tensortest.Must(tensor.New([]int64{1, 2}, 2)), tensortest.Must(tensor.New([]int32{1}))
	for _, ts := range [][]tensor.Tensor{nil, {a, b}, {a, c}, {a, scalar}} {
		_, err := tensor.Stack(ts...)
		tensortest.WantKind(t, err, tensor.ErrMismatch)
	}
	for _, ts := range [][]tensor.Tensor{nil, {scalar}, {a, c}, {a, scalar}} {
		_, err := tensor.Concat(ts...)
		tensortest.WantKind(t, err, tensor.ErrMismatch)
	}
	if got := tensortest.Must(tensor.Concat(a, b)); !slices.Equal(got.Shape, []int64{5}) {
		t.Errorf("Concat = %v", got.Shape)
	}
}

func TestStackThenSlice(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		first := tensortest.Draw(t, "first")
		n := rapid.IntRange(1, 4).Draw(t, "n")
		parts := []tensor.Tensor{first}
		for len(parts) < n {
			data := rapid.SliceOfN(rapid.Byte(), len(first.Data), len(first.Data)).Draw(t, "data")
			parts = append(parts, tensor.Tensor{DType: first.DType, Shape: first.Shape, Data: data})
		}
		whole, err := tensor.Stack(parts...)
		if err != nil {
			t.Fatal(err)
		}
		for i, part := range parts {
			if got := tensortest.Must(whole.Slice(int64(i))); !tensortest.Equal(got, part) {
				t.Fatalf("Slice(%d) = %v, want %v", i, got, part)
			}
		}
	})
}

func TestValues(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOf(rapid.Float32()).Draw(t, "values")
		x := tensortest.Must(tensor.New(values, int64(len(values))))
		if got := tensortest.Must(tensor.Values[float32](x)); !slices.Equal(got, values) {
			t.Fatalf("got %v, want %v", got, values)
		}
		for i, v := range x.Float64s() {
			if v != float64(values[i]) || x.Float64(i) != v {
				t.Fatalf("element %d is %v, want %v", i, v, values[i])
			}
		}
	})
	_, err := tensor.Values[int32](tensortest.Must(tensor.New([]float32{1}, 1)))
	tensortest.WantKind(t, err, tensor.ErrMismatch)
	_, err = tensor.New([]float32{1}, 2)
	tensortest.WantKind(t, err, tensor.ErrMalformed)
	if x := tensortest.Must(tensor.New([]bool{true, false}, 2)); !slices.Equal(x.Float64s(), []float64{1, 0}) {
		t.Errorf("bool: %v", x.Float64s())
	}
}

func TestScalarDTypes(t *testing.T) {
	t.Parallel()
	scalar(t, true, tensor.Bool)
	scalar(t, int8(-1), tensor.Int8)
	scalar(t, int16(-1), tensor.Int16)
	scalar(t, int32(-1), tensor.Int32)
	scalar(t, int64(-1), tensor.Int64)
	scalar(t, uint8(200), tensor.Uint8)
	scalar(t, uint16(200), tensor.Uint16)
	scalar(t, uint32(200), tensor.Uint32)
	scalar(t, uint64(200), tensor.Uint64)
	scalar(t, float32(0.5), tensor.Float32)
	scalar(t, 0.5, tensor.Float64)
}

func scalar[T tensor.Scalar](t *testing.T, value T, want tensor.DType) {
	t.Helper()
	x := tensortest.Must(tensor.New([]T{value}))
	if got := tensortest.Must(tensor.Values[T](x)); x.DType != want || len(got) != 1 || got[0] != value {
		t.Errorf("%v became %s %v, want %s", value, x.DType, got, want)
	}
}

// The largest tensors whose bytes an int64 counts.
func TestInfoAtTheLimits(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		dtype tensor.DType
		shape []int64
		bytes int64 // 0 for an error
	}{
		{tensor.Int8, []int64{math.MaxInt64}, math.MaxInt64},
		{tensor.Int64, []int64{1<<60 - 1}, 1<<63 - 8},
		{tensor.Int64, []int64{1 << 60}, 0},
		{tensor.Int8, []int64{1 << 31, 1 << 31}, 1 << 62},
		{tensor.Int8, []int64{1 << 31, 1 << 32}, 0},
	} {
		t.Run(fmt.Sprint(c.dtype, c.shape), func(t *testing.T) {
			t.Parallel()
			got, err := tensor.Info{DType: c.dtype, Shape: c.shape}.Bytes()
			if c.bytes == 0 {
				tensortest.WantKind(t, err, tensor.ErrMalformed)
			} else if got != c.bytes || err != nil {
				t.Errorf("%d bytes, error %v; want %d", got, err, c.bytes)
			}
		})
	}
}

// No rows are a tensor too, at both ends.
func TestNoRows(t *testing.T) {
	t.Parallel()
	whole := tensortest.Must(tensor.New([]int32{0, 1, 2, 3}, 2, 2))
	for _, at := range []int64{0, 2} {
		if got, err := whole.Rows(at, at); err != nil || got.Len() != 0 || got.Shape[0] != 0 {
			t.Errorf("rows [%d, %d): %v, error %v; want none", at, at, got, err)
		}
	}
	_, err := tensor.Concat(whole, tensor.Tensor{DType: tensor.Int32, Shape: []int64{1, 2}})
	tensortest.WantKind(t, err, tensor.ErrMalformed)
}
