package tensor_test

import (
	"encoding/binary"
	"math"
	"testing"

	"mlpromote.dev/mlpromote/validators/tensor"
	"mlpromote.dev/mlpromote/validators/tensor/tensorfile"
	"mlpromote.dev/mlpromote/validators/tensor/tensortest"
)

func TestFloat64(t *testing.T) {
	t.Parallel()
	inf, nan := math.Inf(1), math.NaN()
	cases := []struct {
		dtype tensor.DType
		bits  uint64
		want  float64
	}{
		{tensor.Float16, 0x3c00, 1}, {tensor.Float16, 0xc000, -2}, {tensor.Float16, 0x7bff, 65504},
		{tensor.Float16, 0x0001, 0x1p-24}, {tensor.Float16, 0x03ff, 1023 * 0x1p-24}, {tensor.Float16, 0x0400, 0x1p-14},
		{tensor.Float16, 0x7c00, inf}, {tensor.Float16, 0xfc00, -inf}, {tensor.Float16, 0x7c01, nan},
		{tensor.BFloat16, 0x3f80, 1}, {tensor.BFloat16, 0xc049, -3.140625}, {tensor.BFloat16, 0x7f80, inf}, {tensor.BFloat16, 0x7fc0, nan},
		{tensor.Float8E4M3, 0x38, 1}, {tensor.Float8E4M3, 0x7e, 448}, {tensor.Float8E4M3, 0xfe, -448},
		{tensor.Float8E4M3, 0x01, 0x1p-9}, {tensor.Float8E4M3, 0x08, 0x1p-6}, {tensor.Float8E4M3, 0x7f, nan}, {tensor.Float8E4M3, 0xff, nan},
		{tensor.Float8E5M2, 0x3c, 1}, {tensor.Float8E5M2, 0x7b, 57344}, {tensor.Float8E5M2, 0x01, 0x1p-16},
		{tensor.Float8E5M2, 0xfc, -inf}, {tensor.Float8E5M2, 0x7d, nan},
		{tensor.Int8, 0xff, -1}, {tensor.Uint8, 0xff, 255}, {tensor.Int16, 0x8000, -32768}, {tensor.Uint16, 0x8000, 32768},
		{tensor.Int32, 0xffffffff, -1}, {tensor.Uint32, 0xffffffff, 1<<32 - 1},
		{tensor.Int64, math.MaxUint64, -1}, {tensor.Uint64, math.MaxUint64, 0x1p64},
		{tensor.Bool, 0, 0}, {tensor.Bool, 1, 1}, {tensor.Bool, 2, 1},
		{tensor.Float64, math.Float64bits(-0.1), -0.1},
	}
	for _, c := range cases {
		data := binary.LittleEndian.AppendUint64(nil, c.bits)[:c.dtype.Size()]
		if got := (tensor.Tensor{DType: c.dtype, Data: data}).Float64(0); !same(got, c.want) {
			t.Errorf("%s %#x is %v, want %v", c.dtype, c.bits, got, c.want)
		}
	}
}

// TestSmallFloatsAsMLDTypes compares every code with what ml_dtypes makes of it.
func TestSmallFloatsAsMLDTypes(t *testing.T) {
	t.Parallel()
	all := tensortest.Must(tensorfile.ReadFile("testdata/floats.safetensors", tensorfile.Limits{}))
	for _, d := range []tensor.DType{tensor.Float8E4M3, tensor.Float8E5M2, tensor.Float16, tensor.BFloat16} {
		codes, values := all[string(d)], all[string(d)+".value"].Float64s()
		if codes.DType != d || len(values) < 256 {
			t.Fatalf("%s: golden file has %s and %d values", d, codes.DType, len(values))
		}
		for i, got := range codes.Float64s() {
			if !same(got, values[i]) {
				t.Errorf("%s element %d is %v, want %v", d, i, got, values[i])
			}
		}
	}
}

func same(a, b float64) bool {
	return a == b && math.Signbit(a) == math.Signbit(b) || math.IsNaN(a) && math.IsNaN(b)
}
