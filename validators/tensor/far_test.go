package tensor_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"mlpromote.dev/mlpromote/validators/tensor"
)

// A case is far if its error is above a quarter of the spread and above six times the middle error. The reference's values are 1 and -1.
func TestFarCases(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		others, few float64 // errors: of 35 cases, and of five
		want        int
	}{
		"none":                           {0, 0, 0},
		"a quarter of the spread":        {0, 0.25, 0},
		"just above":                     {0, 0.2500001, 5},
		"above, and so are all":          {0.3, 0.3, 0},
		"six times the middle error":     {0.0625, 0.375, 0},
		"more than six times":            {0.0625, 0.3750001, 5},
		"many times, but below":          {0.001, 0.2, 0},
		"infinite":                       {0, math.Inf(1), 5},
		"not a number":                   {0.1, math.NaN(), 5},
		"infinite, as is the middle one": {math.Inf(1), math.Inf(1), 40},
	} {
		for _, channels := range []bool{false, true} {
			comparison := tensor.NewComparison(tensor.Options{Channels: channels})
			for n := range 40 {
				want, off := float64(1-2*(n%2)), c.others
				if n%8 == 7 {
					off = c.few
				}
				if err := comparison.Add(n, rowOf(t, []float64{want}), rowOf(t, []float64{want + off})); err != nil {
					t.Fatal(err)
				}
			}
			if got := comparison.Result(); got.FarCases != c.want || got.NoFar {
				t.Errorf("%s, channels %v: %d far cases (unknown: %v), want %d", name, channels, got.FarCases, got.NoFar, c.want)
			}
		}
	}
}

// With a spread for each channel a case is far if one channel is, however small its values are. Copies count for nothing.
func TestFarInAChannel(t *testing.T) {
	t.Parallel()
	compare := func(options tensor.Options, width int) tensor.Result {
		random := rand.New(rand.NewPCG(5, 5))
		c := tensor.NewComparison(options)
		for n := range 200 {
			want, got := make([]float64, width), make([]float64, width)
			for i := range want {
				want[i] = random.NormFloat64() * math.Pow(1000, float64(i%2))
				got[i] = want[i] * (1 + 1e-3*random.NormFloat64())
			}
			add := c.Add
			if n >= 100 {
				add = c.AddCopy
			}
			if n%20 == 0 {
				got[0] = -5
			}
			if err := add(n, rowOf(t, want), rowOf(t, got)); err != nil {
				t.Fatal(err)
			}
		}
		return c.Result()
	}
	if got := compare(tensor.Options{Channels: true}, 2); got.FarCases != 5 || got.NoFar {
		t.Errorf("with a spread for each channel %d cases are far, want the 5 that are no copies", got.FarCases)
	}
	if got := compare(tensor.Options{}, 2); got.FarCases != 0 || got.NoFar {
		t.Errorf("with the spread of the large channel %d cases are far, want 0", got.FarCases)
	}
	if got := compare(tensor.Options{Channels: true}, 17); !got.NoFar {
		t.Error("of 17 channels it is known which cases are far, want that it is not")
	}
}

// The figures of single cases give the same count.
func TestFarFromFiguresOfCases(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(6, 6))
	for range 50 {
		c := tensor.NewComparison(tensor.Options{})
		for n := range 60 {
			want := []float64{random.NormFloat64()}
			got := []float64{want[0] + 0.05*random.NormFloat64()}
			if random.Float64() < 0.1 {
				got[0] = random.NormFloat64()
			}
			add := c.Add
			if n%7 == 0 {
				add = c.AddCopy
			}
			if err := add(n, rowOf(t, want), rowOf(t, got)); err != nil {
				t.Fatal(err)
			}
		}
		again, ok := tensor.Pool(c.Each(), false)
		if want := c.Result().FarCases; !ok || again.FarCases != want {
			t.Errorf("from the figures of cases %d are far (%v), want %d", again.FarCases, ok, want)
		}
	}
}
