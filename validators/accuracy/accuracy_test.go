package accuracy_test

import (
	"errors"
	"math"
	"testing"

	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/validators/accuracy"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// outputs has one row for each winner, whose largest value is there.
func outputs(t *testing.T, winners ...int) tensor.Tensor {
	t.Helper()
	values := make([]float32, 3*len(winners))
	for row, w := range winners {
		values[3*row+w] = 1
	}
	return of(t, values, int64(len(winners)), 3)
}

func of[T tensor.Scalar](t *testing.T, values []T, shape ...int64) tensor.Tensor {
	t.Helper()
	out, err := tensor.New(values, shape...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestCounter(t *testing.T) {
	t.Parallel()
	labels := of(t, []int64{0, 1, 2, 0}, 4)
	for name, c := range map[string]struct {
		reference, engine tensor.Tensor
	}{
		"rows of scores": {outputs(t, 0, 1, 2, 1), outputs(t, 0, 2, 2, 0)},
		"class numbers":  {of(t, []int64{0, 1, 2, 1}, 4), of(t, []int64{0, 2, 2, 0}, 4)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var counter accuracy.Counter
			if err := counter.Add(c.reference, c.engine, labels); err != nil {
				t.Fatal(err)
			}
			want := evidence.Accuracy{Metric: "top1", Reference: 0.75, Engine: 0.75, Lost: 1, Won: 1, Right: 3, Cases: 4, Count: 4}
			if got := counter.Result(); got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
		})
	}
}

// A case with several answers counts by their shares.
func TestCounterOfSeveralAnswers(t *testing.T) {
	t.Parallel()
	labels := of(t, []int32{0, 1, 2, 0}, 1, 4)
	shaped := func(o tensor.Tensor) tensor.Tensor { o.Shape = []int64{1, 4, 3}; return o }
	var counter accuracy.Counter
	if err := counter.Add(shaped(outputs(t, 0, 1, 2, 0)), shaped(outputs(t, 0, 2, 1, 0)), labels); err != nil {
		t.Fatal(err)
	}
	want := evidence.Accuracy{Metric: "top1", Reference: 1, Engine: 0.5, Drop: 0.5, Lost: 0.5, Right: 0.5, Cases: 1, Count: 4}
	if got := counter.Result(); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestAddRefusesOtherShapes(t *testing.T) {
	t.Parallel()
	labels := of(t, []int64{0, 1}, 2)
	var c accuracy.Counter
	for name, engine := range map[string]tensor.Tensor{
		"three rows": outputs(t, 0, 1, 2), "three numbers": of(t, []int64{0, 1, 2}, 3), "floats of the labels' shape": of(t, []float32{0, 1}, 2),
	} {
		if err := c.Add(outputs(t, 0, 1), engine, labels); !errors.Is(err, tensor.ErrMismatch) {
			t.Errorf("%s against two labels: error %v, want a mismatch", name, err)
		}
	}
	if got := c.Result(); got.Cases != 0 || got.Engine != 0 {
		t.Errorf("got %+v, want no cases", got)
	}
}

// One probability for each case is the answer yes from a half on.
func TestAnswersOfOneProbability(t *testing.T) {
	t.Parallel()
	labels := of(t, []int64{1, 1, 1, 0, 0, 0, 0, 1}, 8)
	reference, engine := []float32{0.9, 0.6, 0.4, 0.1, 0.2, 0.7, 0.3, 0.5}, []float32{0.9, 0.4, 0.4, 0.1, 0.2, 0.7, 0.3, float32(math.NaN())}
	for name, want := range map[string][2]float64{"f1_binary": {6.0 / 8, 1.0 / 3}, "top1": {6.0 / 8, 4.0 / 8}} {
		m, err := accuracy.Find(name)
		if err != nil {
			t.Fatal(err)
		}
		c := accuracy.NewCounter(m, true, 0)
		if err := c.Add(of(t, reference, 8, 1), of(t, engine, 8, 1), labels); err != nil {
			t.Fatal(err)
		}
		if got := c.Result(); math.Abs(float64(got.Reference)-want[0]) > 1e-12 || math.Abs(float64(got.Engine)-want[1]) > 1e-12 {
			t.Errorf("%s: %v and %v, want %v", name, got.Reference, got.Engine, want)
		}
	}
}
