package tensor_test

import (
	"math"
	"testing"

	"mlpromote.dev/mlpromote/validators/tensor"
)

// Doubling is exact for every finite value with a finite double; other values stay.
func TestDoubled(t *testing.T) {
	t.Parallel()
	values := []float64{0, math.Copysign(0, -1), 1, -1.5, 3e-320, -5e-324, 65504, 1e300, math.MaxFloat64, math.Inf(-1), math.NaN(), 6.1e-5, 6e-8}
	f32 := make([]float32, len(values))
	for i, v := range values {
		f32[i] = float32(v)
	}
	wide, err := tensor.New(values, int64(len(values)))
	if err != nil {
		t.Fatal(err)
	}
	single, err := tensor.New(f32, int64(len(values)))
	if err != nil {
		t.Fatal(err)
	}
	half, err := tensor.NewFloat16(values, int64(len(values)))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		t    tensor.Tensor
		most float64
	}{{wide, math.MaxFloat64}, {single, math.MaxFloat32}, {half, 65504}} {
		before, after := c.t.Float64s(), tensor.Doubled(c.t).Float64s()
		for i, v := range before {
			want := 2 * v
			if math.IsNaN(v) || math.Abs(want) > c.most {
				want = v
			}
			if got := after[i]; math.Float64bits(got) != math.Float64bits(want) && !(math.IsNaN(got) && math.IsNaN(want)) {
				t.Errorf("%s: %v doubled is %v, want %v", c.t.DType, v, got, want)
			}
		}
		if again := c.t.Float64s(); math.Float64bits(again[2]) != math.Float64bits(before[2]) {
			t.Errorf("%s: the tensor itself changed", c.t.DType)
		}
	}
	whole, err := tensor.New([]int64{7}, 1)
	if err != nil || tensor.Doubled(whole).Float64(0) != 7 {
		t.Errorf("an integer is doubled: %v", err)
	}
}
