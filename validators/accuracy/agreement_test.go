package accuracy_test

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"mlpromote.dev/mlpromote/validators/accuracy"
	"mlpromote.dev/mlpromote/validators/tensor"
	"mlpromote.dev/mlpromote/validators/tensor/tensorfile"
)

// A box of 100 by 100 at x, of a class, and with a score.
func found(x, score, class float64) []float64 { return []float64{x, 0, x + 100, 100, score, class} }

func TestAgreement(t *testing.T) {
	t.Parallel()
	two := slices.Concat(found(0, 0.9, 1), found(500, 0.9, 2))
	padded := slices.Concat(two, found(900, 0.1, 3), []float64{0, 0, 0, 0, 0, -1})
	for name, c := range map[string]struct {
		reference, engine []float64
		want              float64
	}{
		"the same":                         {two, two, 1},
		"in another order":                 {padded, slices.Concat([]float64{0, 0, 0, 0, 0, -1}, found(900, 0.1, 3), two[6:], two[:6]), 1},
		"one of two is missing":            {two, two[:6], 2.0 / 3},
		"one more":                         {two[:6], two, 2.0 / 3},
		"another class":                    {two, slices.Concat(two[:6], found(500, 0.9, 1)), 0.5},
		"one of a low score is missing":    {padded, two, 2 * 1.62 / (1.62 + 1.63)},
		"a shift to an overlap of 0.818":   {two[:6], found(10, 0.9, 1), 0.7},
		"a shift to an overlap below half": {two[:6], found(40, 0.9, 1), 0},
		"half of the score":                {two[:6], found(0, 0.45, 1), 2 * 0.25 / 1.25},
		"twice the same box":               {two[:6], slices.Concat(two[:6], two[:6]), 2.0 / 3},
		"NaN":                              {two, slices.Concat(two[:6], found(math.NaN(), 0.9, 2)), 0},
		"infinity":                         {two, slices.Concat(two[:6], found(500, math.Inf(1), 2)), 0},
		"a class between two":              {two, slices.Concat(two[:6], found(500, 0.9, 1.5)), 0},
		"a negative score is none":         {two[:6], slices.Concat(two[:6], found(500, -3, 2)), 1},
	} {
		got := accuracy.Agree(c.reference, c.engine)
		if math.Abs(got.Share-c.want) > 1e-12 || !(got.Weight > 0) {
			t.Errorf("%s: %+v; want %v", name, got, c.want)
		}
		if back := accuracy.Agree(c.engine, c.reference); math.Abs(got.Share-back.Share) > 1e-12 {
			t.Errorf("%s: %v, and %v the other way", name, got.Share, back.Share)
		}
	}
}

// A case without a detection on any side shows nothing, and a reference without corners or classes has no detections.
func TestAgreementOfNothing(t *testing.T) {
	t.Parallel()
	padding := []float64{0, 0, 0, 0, 0, -1}
	for name, c := range map[string]struct{ reference, engine []float64 }{
		"nothing at all": {nil, nil}, "padding": {padding, []float64{5, 5, 9, 9, 0, 3}}, "scores below 0": {found(0, -5, 1), found(70, -1, 2)},
	} {
		if got := accuracy.Agree(c.reference, c.engine); got.Weight != 0 || got.Share == 1 && name == "scores below 0" {
			t.Errorf("%s: %+v; want no weight", name, got)
		}
	}
	for name, reference := range map[string][]float64{"a class between two": found(0, 1, 0.5), "centre and size": {50, 50, 10, 10, 0.9, 1}} {
		if got := accuracy.Agree(reference, found(0, 1, 1)); got.Weight < 1 || got.Share != 0 {
			t.Errorf("%s: %+v; want no agreement", name, got)
		}
		if got := accuracy.Agree(reference, reference); got.Share != 1 {
			t.Errorf("%s with itself: %+v; want agreement", name, got)
		}
		var boxes accuracy.Boxes
		if err := boxes.Add(reference); err == nil && boxes.AreCorners() {
			t.Errorf("%s: corners with classes", name)
		}
	}
	var boxes accuracy.Boxes
	for i := range 20 {
		of := found(0, 1, 1)
		if i == 7 {
			of = []float64{50, 50, 10, 10, 0.9, 1}
		}
		if err := boxes.Add(of); err != nil {
			t.Fatal(err)
		}
	}
	if !boxes.AreCorners() {
		t.Error("one box of twenty without an area: no corners")
	}
}

// A class is lost in a case if less than half of its weight agrees.
func TestClassesOfDetections(t *testing.T) {
	t.Parallel()
	reference := slices.Concat(found(0, 0.9, 1), found(200, 0.9, 1), found(400, 0.9, 7))
	got := accuracy.Agree(reference, slices.Concat(found(0, 0.9, 1), found(205, 0.8, 1)))
	if len(got.Classes) != 2 || got.Classes[1] || !got.Classes[7] {
		t.Errorf("%+v; want class 7 to be lost, and class 1 not", got)
	}
}

// With a score of each class, a box is of its best one.
func TestScoresOfClasses(t *testing.T) {
	t.Parallel()
	tensors := make(map[string]tensor.Tensor)
	for name, of := range map[string]struct {
		values []float32
		shape  []int64
	}{"b": {[]float32{0, 0, 1, 1, 2, 2, 3, 3}, []int64{1, 2, 4}}, "s": {[]float32{0.1, 0.7, 0.2, float32(math.NaN()), 0.4, 0.3}, []int64{1, 2, 3}}} {
		made, err := tensor.New(of.values, of.shape...)
		if err != nil {
			t.Fatal(err)
		}
		tensors[name] = made
	}
	path := filepath.Join(t.TempDir(), "x.safetensors")
	to, err := os.Create(path)
	if err == nil {
		err = errors.Join(tensorfile.Write(to, tensors, nil), to.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	f, err := tensorfile.Open(path, tensorfile.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	got, err := accuracy.DetectionOutputs{Detections: accuracy.Detections{Boxes: "b", Scores: "s"}}.Rows(f, 0, 1)
	if err != nil || !slices.Equal(got.Shape, []int64{1, 2, 6}) {
		t.Fatalf("shape %v, error %v", got.Shape, err)
	}
	values := got.Float64s()
	if !slices.Equal(values[:4], []float64{0, 0, 1, 1}) || math.Abs(values[4]-0.7) > 1e-6 || values[5] != 1 || !math.IsNaN(values[10]) {
		t.Errorf("got %v, want class 1 with 0.7, and NaN", values)
	}
}
