package validators_test

import (
	"math"
	"reflect"
	"slices"
	"testing"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/accuracy"
	"mlpromote.dev/mlpromote/validators/percase"
	"mlpromote.dev/mlpromote/validators/tensor"
)

func columnOf[T tensor.Scalar](t *testing.T, shape []int64, values ...T) tensor.Tensor {
	t.Helper()
	of, err := tensor.New(values, shape...)
	if err != nil {
		t.Fatal(err)
	}
	return of
}

// Shifts are counted by the label of the case, from figures that anybody may have written.
func TestShifts(t *testing.T) {
	t.Parallel()
	rate, _, err := percase.Figures{Accuracy: accuracy.Columns{
		"lost": columnOf(t, []int64{4}, 1.0, 0, 0.5, 0), "won": columnOf(t, []int64{4}, 0.0, 0, 0, 1)}}.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	other, _, err := percase.Figures{Accuracy: accuracy.Columns{"reference.score": columnOf(t, []int64{4}, 1.0, 0, 0, 0)}}.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	got, err := validators.Shifts(rate, []int64{9, 2, 9, 2})
	want := []validators.ClassShift{{Class: 2, Cases: 2, Won: 1}, {Class: 9, Cases: 2, Lost: 1.5}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, error %v, want %v", got, err, want)
	}
	if got, err := validators.Shifts(other, []int64{1, 2, 3, 4}); got != nil || err != nil {
		t.Errorf("a metric that is no rate: got %v, error %v, want none", got, err)
	}
	for name, c := range map[string]struct {
		file   []byte
		labels []int64
	}{"fewer labels": {rate, []int64{1}}, "no labels": {rate, nil}, "junk": {[]byte("junk"), []int64{1}}} {
		if got, err := validators.Shifts(c.file, c.labels); !registry.HasCode(err, registry.CodeInvalid) {
			t.Errorf("%s: got %v, error %v, want it refused", name, got, err)
		}
	}
}

// Figures of one answer to each case say which class was taken for which; where they would make the file too large, they are left out.
func TestShiftsSayWhatWasTaken(t *testing.T) {
	t.Parallel()
	scores := func(rows ...[]float32) tensor.Tensor {
		return columnOf(t, []int64{int64(len(rows)), 3}, slices.Concat(rows...)...)
	}
	zero, one, two, none := []float32{1, 0, 0}, []float32{0, 1, 0}, []float32{0, 0, 1}, []float32{float32(math.NaN()), 0, 0}
	var counter accuracy.Counter
	labels := []int64{0, 0, 0, 0, 2, 2}
	err := counter.Add(scores(zero, zero, zero, one, two, two), scores(one, one, none, two, two, two), columnOf(t, []int64{6}, labels...))
	if err != nil {
		t.Fatal(err)
	}
	file, leftOut, err := percase.Figures{Accuracy: counter.Columns()}.Marshal()
	if err != nil || leftOut != "" {
		t.Fatalf("left out is %q, error %v", leftOut, err)
	}
	got, err := validators.Shifts(file, labels)
	want := []validators.ClassShift{
		{Class: 0, Cases: 4, Lost: 3, Taken: []validators.Taken{{Reference: 0, Engine: 1, Cases: 2}, {Reference: 0, Engine: -1, Cases: 1}, {Reference: 1, Engine: 2, Cases: 1}}},
		{Class: 2, Cases: 2},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, error %v, want %v", got, err, want)
	}

	columns := accuracy.Columns{"lost": columnOf(t, []int64{115_000}, make([]float64, 115_000)...), "answer.reference": columnOf(t, []int64{115_000}, make([]int32, 115_000)...)}
	columns["won"], columns["right"], columns["answers"] = columns["lost"], columns["lost"], columnOf(t, []int64{115_000}, make([]int64, 115_000)...)
	columns["answer.engine"] = columns["answer.reference"]
	file, leftOut, err = percase.Figures{Accuracy: columns}.Marshal()
	if err != nil || leftOut != "" || file == nil {
		t.Fatalf("of many cases: %d bytes, left out is %q, error %v", len(file), leftOut, err)
	}
	read, err := percase.Read(file)
	if _, _, ok := read.Accuracy.AnsweredClasses(); ok || err != nil || len(read.Accuracy) != 4 {
		t.Errorf("of many cases: %d columns, error %v, want those of figures", len(read.Accuracy), err)
	}
}

func TestClassLabels(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		labels tensor.Tensor
		want   []int64 // nil: they are no classes
	}{
		"one of each case":      {columnOf(t, []int64{2}, int64(3), 4), []int64{3, 4}},
		"with a second axis":    {columnOf(t, []int64{2, 1}, int32(3), 4), []int64{3, 4}},
		"several of each case":  {columnOf(t, []int64{1, 2}, int64(3), 4), nil},
		"numbers with fraction": {columnOf(t, []int64{2}, 0.5, 1), nil},
	} {
		got, ok := validators.ClassLabels(c.labels)
		if ok != (c.want != nil) || !slices.Equal(got, c.want) {
			t.Errorf("%s: got %v %t, want %v", name, got, ok, c.want)
		}
	}
}

// Answers that all differ, as a hostile verifier may write them, take about as long as others.
func TestShiftsOfManyTurns(t *testing.T) {
	t.Parallel()
	const cases = 170_000
	took := func(turns int32) time.Duration {
		share, reference, engine := make([]float64, cases), make([]int32, cases), make([]int32, cases)
		for i := range engine {
			engine[i] = 1 + int32(i)%turns
		}
		shape := []int64{cases}
		file, leftOut, err := percase.Figures{Accuracy: accuracy.Columns{"lost": columnOf(t, shape, share...), "won": columnOf(t, shape, share...),
			accuracy.AnswerOfReference: columnOf(t, shape, reference...), accuracy.AnswerOfEngine: columnOf(t, shape, engine...)}}.Marshal()
		if err != nil || leftOut != "" {
			t.Fatalf("left out %q, error %v", leftOut, err)
		}
		began := time.Now()
		got, err := validators.Shifts(file, make([]int64, cases))
		if err != nil || len(got) != 1 || len(got[0].Taken) != int(turns) {
			t.Fatalf("%d classes, error %v; want one with %d turns", len(got), err, turns)
		}
		return time.Since(began)
	}
	if one, all := took(1), took(cases); all > time.Second+100*one {
		t.Errorf("%v for one turn, and %v for as many as cases", one, all)
	}
}
