package tensor_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"mlpromote.dev/mlpromote/validators/tensor"
)

// A class is lost in a case if fewer than half of its places keep it, or if more others than there are have it.
func TestClasses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		reference, engine []int64
		want              []tensor.ClassCases
	}{
		"the same":            {[]int64{0, 0, 1, 1}, []int64{0, 0, 1, 1}, []tensor.ClassCases{{0, 1, 0}, {1, 1, 0}}},
		"half is kept":        {[]int64{0, 0, 0, 1, 1}, []int64{0, 0, 0, 1, 0}, []tensor.ClassCases{{0, 1, 0}, {1, 1, 0}}},
		"less than half":      {[]int64{0, 0, 0, 0, 1, 1, 1}, []int64{0, 0, 0, 0, 1, 0, 0}, []tensor.ClassCases{{0, 1, 0}, {1, 1, 1}}},
		"as many more":        {[]int64{0, 0, 0, 1}, []int64{0, 0, 1, 1}, []tensor.ClassCases{{0, 1, 0}, {1, 1, 0}}},
		"twice as many more":  {[]int64{0, 0, 0, 0, 0, 1}, []int64{0, 0, 0, 1, 1, 1}, []tensor.ClassCases{{0, 1, 0}, {1, 1, 1}}},
		"a class of its own":  {[]int64{0, 0, 0}, []int64{0, 0, 5}, []tensor.ClassCases{{0, 1, 0}}},
		"large classes":       {[]int64{300, 301, 0, 0, 0}, []int64{300, 301, 0, 0, 0}, []tensor.ClassCases{{0, 1, 0}, {tensor.OtherClasses, 1, 0}}},
		"large classes, lost": {[]int64{300, 301, 302, 0, 0, 0}, []int64{300, 0, 0, 0, 0, 0}, []tensor.ClassCases{{0, 1, 0}, {tensor.OtherClasses, 1, 1}}},
		"below 0":             {[]int64{-1, -1, 7}, []int64{7, -1, 7}, []tensor.ClassCases{{7, 1, 0}, {tensor.OtherClasses, 1, 0}}},
	} {
		comparison := tensor.NewComparison(tensor.Options{})
		made := func(values []int64) tensor.Tensor {
			of, err := tensor.New(values, int64(len(values)))
			if err != nil {
				t.Fatal(err)
			}
			return of
		}
		if err := comparison.Add(0, made(c.reference), made(c.engine)); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, comparison.Result().Classes); diff != "" {
			t.Errorf("%s, wanted with -:\n%s", name, diff)
		}
	}
}

// Of scores of more than 256 classes, the ones from 256 on are one class.
func TestClassesOfManyScores(t *testing.T) {
	t.Parallel()
	comparison := tensor.NewComparison(tensor.Options{})
	scores := func(best int) tensor.Tensor {
		values := make([]float64, 1000)
		values[best] = 1
		return rowOf(t, values)
	}
	for n := range 10 {
		best := 990 * (n % 2)
		if err := comparison.Add(n, scores(best), scores(0)); err != nil {
			t.Fatal(err)
		}
	}
	if worst, ok := comparison.Result().WorstClass(); !ok || worst != (tensor.ClassCases{Class: tensor.OtherClasses, Cases: 5, Lost: 5}) {
		t.Errorf("worst class %+v, %t; want the ones from 256 on, lost in 5 cases", worst, ok)
	}
}
