package tensor_test

import (
	"math"
	"testing"

	"mlpromote.dev/mlpromote/validators/tensor"
)

// Every float16 comes back as it was, and other numbers as the nearest one.
func TestNewFloat16(t *testing.T) {
	t.Parallel()
	all := tensor.Tensor{DType: tensor.Float16, Shape: []int64{1 << 16}}
	for bits := range 1 << 16 {
		all.Data = append(all.Data, byte(bits), byte(bits>>8))
	}
	values := all.Float64s()
	again, err := tensor.NewFloat16(values, 1<<16)
	if err != nil {
		t.Fatal(err)
	}
	for i, got := range again.Float64s() {
		if want := values[i]; got != want && !(math.IsNaN(got) && math.IsNaN(want)) {
			t.Fatalf("bits %04x: %v came back as %v", i, want, got)
		}
	}
	rounded, err := tensor.NewFloat16([]float64{0.1, 1 + 1.0/4096, 65519, 65520, -1e30, 1e-9}, 6)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []float64{0.0999755859375, 1, 65504, math.Inf(1), math.Inf(-1), 0} {
		if got := rounded.Float64(i); got != want {
			t.Errorf("element %d: got %v, want %v", i, got, want)
		}
	}
	if _, err := tensor.NewFloat16([]float64{1, 2}, 3); err == nil {
		t.Error("two values in a shape of three: no error")
	}
}
