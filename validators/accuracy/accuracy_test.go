package accuracy_test

import (
	"testing"

	"mlpromote.dev/mlpromote/validators/accuracy"
	"mlpromote.dev/mlpromote/validators/tensor"
)

func outputs(t *testing.T, winners ...int) tensor.Tensor {
	t.Helper()
	values := make([]float32, 3*len(winners))
	for row, w := range winners {
		values[3*row+w] = 1
	}
	out, err := tensor.New(values, int64(len(winners)), 3)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestCompare(t *testing.T) {
	t.Parallel()
	labels, err := tensor.New([]int64{0, 1, 2, 0}, 4)
	if err != nil {
		t.Fatal(err)
	}
	var reference, engine accuracy.Counter
	for _, add := range []error{
		reference.Add(outputs(t, 0, 1, 2, 1), labels),
		engine.Add(outputs(t, 0, 2, 2, 1), labels),
	} {
		if add != nil {
			t.Fatal(add)
		}
	}
	got := accuracy.Compare(reference, engine)
	if got.Reference != 0.75 || got.Engine != 0.5 || got.Drop != 0.25 || got.Count != 4 {
		t.Errorf("got %+v", got)
	}
}

func TestAddRefusesOtherShapes(t *testing.T) {
	t.Parallel()
	labels, err := tensor.New([]int64{0, 1}, 2)
	if err != nil {
		t.Fatal(err)
	}
	var c accuracy.Counter
	if err := c.Add(outputs(t, 0, 1, 2), labels); err == nil {
		t.Error("three rows against two labels passed")
	}
	if c.Fraction() != 0 {
		t.Error("an empty counter is not 0")
	}
}
