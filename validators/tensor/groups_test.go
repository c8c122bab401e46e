package tensor_test

import (
	"fmt"
	"math"
	"testing"

	"mlpromote.dev/mlpromote/validators/tensor"
)

// Cases have a risk that varies in each of four merchants, and the engine's is what the test makes of it.
func TestGroups(t *testing.T) {
	t.Parallel()
	merchant := tensor.Grouping{By: "merchant", Of: func(n int) (string, bool) { return fmt.Sprint(n % 4), n < 100 }}
	risk := func(n int) float64 { return float64(1+n%4) / 10 * (1 + math.Sin(float64(n))/2) }
	for name, c := range map[string]struct {
		cases  int
		engine func(n int, risk float64) float64
		count  int
		worst  string
		lost   int
	}{
		"the same":                   {100, func(_ int, r float64) float64 { return r }, 4, "", 0},
		"noise":                      {100, func(n int, r float64) float64 { return r + math.Cos(float64(7*n))/50 }, 4, "", 0},
		"a grid":                     {100, func(_ int, r float64) float64 { return math.Round(50*r) / 50 }, 4, "", 0},
		"always 0 for one":           {100, func(n int, r float64) float64 { return r * min(float64(n%4), 1) }, 4, "0", 1},
		"almost always the same":     {100, func(n int, r float64) float64 { return r * max(min(float64(n%4), 1), 0.05) }, 4, "0", 1},
		"always the mean for two":    {100, func(n int, r float64) float64 { return map[bool]float64{true: r, false: 0.2}[n%4 > 1] }, 4, "0", 2},
		"always 0":                   {100, func(int, float64) float64 { return 0 }, 4, "0", 4},
		"half of the variation":      {100, func(n int, r float64) float64 { return r / 2 }, 4, "", 0},
		"seven cases of each":        {28, func(int, float64) float64 { return 0 }, 0, "", 0},
		"cases in no group":          {200, func(n int, r float64) float64 { return map[bool]float64{true: r}[n < 100] }, 4, "", 0},
		"a NaN, which others refuse": {100, func(n int, r float64) float64 { return map[bool]float64{true: r, false: math.NaN()}[n > 0] }, 4, "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			comparison := tensor.NewComparison(tensor.Options{Keep: true})
			for n := range c.cases {
				want, got := rowOf(t, []float64{risk(n)}), rowOf(t, []float64{c.engine(n, risk(n))})
				if err := comparison.Add(n, want, got); err != nil {
					t.Fatal(err)
				}
				if err := comparison.AddCopy(n, want, want); err != nil {
					t.Fatal(err)
				}
			}
			got := comparison.Groups([]tensor.Grouping{merchant})
			if got.Count != c.count || got.Lost != c.lost || got.Worst.Value != c.worst || c.lost > 0 && (got.Worst.Cases != 25 || got.Worst.By != "merchant") {
				t.Errorf("%+v; want %d groups, %d lost, the worst %q", got, c.count, c.lost, c.worst)
			}
		})
	}
}

// Of scores, the best class is the answer; of classes, the value.
func TestGroupsOfClasses(t *testing.T) {
	t.Parallel()
	by := tensor.Grouping{By: "site", Of: func(n int) (string, bool) { return fmt.Sprint(n % 2), true }}
	class := func(n int) int64 { return int64(n / 2 % 5 / 4) } // one in five is of class 1
	one := func(class int64) tensor.Tensor {
		made, err := tensor.New([]int64{class}, 1)
		if err != nil {
			t.Fatal(err)
		}
		return made
	}
	scores := func(class int64) tensor.Tensor { return rowOf(t, []float64{100, 100 + float64(2*class-1)/1e3, 100}) }
	for name, c := range map[string]struct {
		cases int
		make  func(int64) tensor.Tensor
		lost  int
	}{
		"classes":          {50, one, 1},
		"scores":           {50, scores, 1},
		"too few of one":   {36, one, 0},
		"too few for both": {14, one, 0},
	} {
		comparison := tensor.NewComparison(tensor.Options{Keep: true, Ranks: true})
		for n := range c.cases {
			engine := class(n) * int64(n%2) // none in the first group
			if err := comparison.Add(n, c.make(class(n)), c.make(engine)); err != nil {
				t.Fatal(err)
			}
		}
		if got := comparison.Groups([]tensor.Grouping{by}); got.Lost != c.lost || c.lost > 0 && got.Worst != (tensor.LostGroup{By: "site", Value: "0", Cases: c.cases / 2, Index: -1}) {
			t.Errorf("%s: %+v, want %d lost", name, got, c.lost)
		}
	}
}
