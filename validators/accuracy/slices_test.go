package accuracy_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"mlpromote.dev/mlpromote/validators/accuracy"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// The figures of a slice are those of its cases alone, for every metric.
func TestSlicesAreTheirCases(t *testing.T) {
	t.Parallel()
	for _, name := range accuracy.Metrics() {
		m := metric(t, name)
		r := rand.New(rand.NewPCG(8, 9))
		reference, engine := sets(r, m, 90)
		of := make([]int64, 90)
		var second []int
		for i := range of {
			of[i] = int64(r.IntN(3)) - 1
			if of[i] == 1 {
				second = append(second, i)
			}
		}
		slices, err := counted(t, m, reference, engine, 2).Slices(of)
		if err != nil || len(slices) != 3 || slices[0].Value != -1 || slices[2].Value != 1 {
			t.Fatalf("%s: slices %+v, error %v", name, slices, err)
		}
		alone := counted(t, m, permuted(reference, second), permuted(engine, second), 1)
		if got, want := slices[2].Accuracy, alone.Result(); got.Cases != want.Cases ||
			got.Right != want.Right || got.Lost != want.Lost || got.Seed != want.Seed ||
			math.Abs(float64(got.Engine-want.Engine)) > 1e-12 || math.Abs(float64(got.Reference-want.Reference)) > 1e-12 {
			t.Errorf("%s: got %+v, want %+v", name, got, want)
		}
		if f := slices[2].Figures; f != nil && f.Drop(0.95) != alone.Figures().Drop(0.95) {
			t.Errorf("%s: the drop of the slice is %+v, want %+v", name, f.Drop(0.95), alone.Figures().Drop(0.95))
		}
	}
}

// There are at most 64 slices, by whole numbers.
func TestSlicesRefuse(t *testing.T) {
	t.Parallel()
	m := metric(t, "mae")
	reference, engine := sets(rand.New(rand.NewPCG(8, 9)), m, 65)
	c := counted(t, m, reference, engine, 1)
	of65 := make([]int64, 65)
	for i := range of65 {
		of65[i] = int64(i)
	}
	if _, err := c.Slices(of65); err == nil {
		t.Error("65 slices are accepted")
	}
	of65[64] = 0
	if all, err := c.Slices(of65); err != nil || len(all) != accuracy.MaxSlices {
		t.Errorf("64 slices: %d, error %v", len(all), err)
	}
	for name, column := range map[string]tensor.Tensor{"floats": of(t, []float32{1, 2}, 2),
		"too few": of(t, []int8{1}, 1), "two columns": of(t, []int8{1, 2, 3, 4}, 2, 2), "a scalar": of(t, []int8{1})} {
		if got, err := accuracy.SliceOf(column, 2); err == nil {
			t.Errorf("%s: slices %v, want an error", name, got)
		}
	}
	if got, err := accuracy.SliceOf(of(t, []bool{true, false}, 2, 1), 2); err != nil || got[0] != 1 || got[1] != 0 {
		t.Errorf("booleans: %v, error %v", got, err)
	}
}
