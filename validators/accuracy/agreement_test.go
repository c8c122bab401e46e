package accuracy_test

import (
	"math"
	"slices"
	"testing"

	"mlpromote.dev/mlpromote/validators/accuracy"
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
		"none on both sides":               {[]float64{0, 0, 0, 0, 0, -1}, []float64{5, 5, 9, 9, 0, 3}, 1},
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
		"nothing at all":                   {nil, nil, 1},
	} {
		got, err := accuracy.Agreement(c.reference, c.engine)
		back, errBack := accuracy.Agreement(c.engine, c.reference)
		if err != nil || math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%s: %v, %v; want %v", name, got, err, c.want)
		}
		if errBack == nil && math.Abs(got-back) > 1e-12 {
			t.Errorf("%s: %v, and %v the other way", name, got, back)
		}
	}
	if _, err := accuracy.Agreement(found(0, 1, 0.5), two); err == nil {
		t.Error("a reference with class 0.5 has detections")
	}
}
