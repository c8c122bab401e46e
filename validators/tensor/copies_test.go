package tensor_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"mlpromote.dev/mlpromote/validators/tensor"
)

// Copies of cases change no figure that is of all cases together: copies of a few outliers would make the spread so large that no error
// of the others counts, and copies of right cases would dilute the noise.
func TestCopiesChangeNothing(t *testing.T) {
	t.Parallel()
	for _, options := range []tensor.Options{{}, {Systematic: true}, {Channels: true, Systematic: true}} {
		compare := func(copies int) tensor.Result {
			random := rand.New(rand.NewPCG(7, 7))
			c := tensor.NewComparison(options)
			for n := range 100 {
				want := []float64{random.NormFloat64(), 5 * random.NormFloat64()}
				got := []float64{want[0] + 0.2*random.NormFloat64(), want[1] + random.NormFloat64()}
				times := 0
				if n%25 == 0 {
					want, times = []float64{1e4 * float64(n+1), 1e5}, copies
					got = want
				}
				for again := range 1 + times {
					add := c.Add
					if again > 0 {
						add = c.AddCopy
					}
					if err := add(n, rowOf(t, want), rowOf(t, got)); err != nil {
						t.Fatal(err)
					}
				}
			}
			return c.Result()
		}
		once, often := compare(0), compare(50)
		if often.SpreadSNR != once.SpreadSNR || often.Spread != once.Spread || often.MaxError != once.MaxError || often.CaseError != once.CaseError ||
			often.CaseDegrees != once.CaseDegrees || often.FarCases != once.FarCases || often.Systematic != once.Systematic {
			t.Errorf("%+v: with copies %+v, without %+v; want the same figures", options, often, once)
		}
		if once.SpreadSNR > 20 {
			t.Errorf("%+v: %v dB, want the noise of most cases", options, once.SpreadSNR)
		}
	}
}

// An error in a copy alone counts: the engine does not give the same each time.
func TestErrorInACopy(t *testing.T) {
	t.Parallel()
	for _, options := range []tensor.Options{{}, {Channels: true}} {
		c := tensor.NewComparison(options)
		for n := range 10 {
			if err := c.Add(n, rowOf(t, []float64{float64(n)}), rowOf(t, []float64{float64(n)})); err != nil {
				t.Fatal(err)
			}
		}
		if err := c.AddCopy(10, rowOf(t, []float64{9}), rowOf(t, []float64{0})); err != nil {
			t.Fatal(err)
		}
		if r := c.Result(); r.MaxAbs != 9 || !(r.MaxError > 3) || !(r.CaseError > 3) || math.IsInf(r.MaxError, 0) {
			t.Errorf("%+v: largest error %v, %v and %v of the spread; want that of the copy", options, r.MaxAbs, r.MaxError, r.CaseError)
		}
	}
}
