package tensor_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"mlpromote.dev/mlpromote/validators/tensor"
)

// prices are values from 4 to about 4000, in a channel beside one of fewer magnitudes.
func prices(n int) [][]float64 {
	rng := rand.New(rand.NewPCG(3, 3))
	rows := make([][]float64, n)
	for i := range rows {
		rows[i] = []float64{4 * math.Exp(7*float64(i)/float64(n)), 5 * math.Exp(5*float64(i)/float64(n))}
	}
	rng.Shuffle(n, func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
	return rows
}

func TestQuarters(t *testing.T) {
	t.Parallel()
	floor := func(r []float64) []float64 { return []float64{max(r[0], 23), r[1]} }
	for name, c := range map[string]struct {
		cases    int
		change   func(r []float64) []float64 // of the engine
		prepare  func(r []float64)           // of the reference
		options  tensor.Options
		channel  int     // of the worst; -2: no quarters
		from, to float64 // of the error of the worst quarter
	}{
		"a floor under the cheapest":   {400, floor, nil, tensor.Options{Quarters: true, Channels: true}, 0, 1, 5},
		"errors of one size":           {400, func(r []float64) []float64 { return []float64{r[0] + 5, r[1]} }, nil, tensor.Options{Quarters: true, Channels: true}, 0, 1.5, 2.5},
		"errors in proportion":         {400, func(r []float64) []float64 { return []float64{1.02 * r[0], r[1]} }, nil, tensor.Options{Quarters: true, Channels: true}, 0, 0.079, 0.081},
		"no error":                     {400, func(r []float64) []float64 { return r }, nil, tensor.Options{Quarters: true, Channels: true}, 0, 0, 0},
		"nobody asked":                 {400, floor, nil, tensor.Options{Channels: true}, -2, 0, 0},
		"too few":                      {39, floor, nil, tensor.Options{Quarters: true, Channels: true}, -2, 0, 0},
		"one value is not above 0":     {400, floor, func(r []float64) { r[0] -= 4.001 }, tensor.Options{Quarters: true, Channels: true}, -2, 0, 0},
		"another of one magnitude":     {400, floor, func(r []float64) { r[1] += 1e4 }, tensor.Options{Quarters: true, Channels: true}, -2, 0, 0},
		"one magnitude":                {400, floor, func(r []float64) { r[0] += 1000 }, tensor.Options{Quarters: true, Channels: true}, -2, 0, 0},
		"a single large value":         {400, floor, func(r []float64) { r[0] = 10 + r[0]/1e9 }, tensor.Options{Quarters: true, Channels: true}, -2, 0, 0},
		"all channels together":        {400, floor, nil, tensor.Options{Quarters: true}, -1, 1, 9},
		"a NaN of the engine":          {400, func(r []float64) []float64 { return []float64{math.NaN(), r[1]} }, nil, tensor.Options{Quarters: true, Channels: true}, 0, math.Inf(1), math.Inf(1)},
		"a NaN of the reference, once": {400, floor, func(r []float64) { r[0] = math.Sqrt(r[0] - 4.01) }, tensor.Options{Quarters: true, Channels: true}, -2, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			comparison := tensor.NewComparison(c.options)
			for i, r := range prices(c.cases) {
				if c.prepare != nil {
					c.prepare(r)
				}
				want, engine := rowOf(t, r), rowOf(t, c.change(r))
				if err := comparison.Add(i, want, engine); err != nil {
					t.Fatal(err)
				}
				if i == 0 {
					if err := comparison.AddCopy(i, want, engine); err != nil {
						t.Fatal(err)
					}
				}
			}
			got := comparison.Result().Quarters
			switch {
			case got == nil && c.channel != -2:
				t.Fatal("there are no quarters")
			case got != nil && c.channel == -2:
				t.Fatalf("quarters %+v, want none", got)
			case got == nil:
				return
			}
			if worst := got.Worst().Error; got.Channel != c.channel || !(worst >= c.from && worst <= c.to) {
				t.Errorf("channel %d, worst error %g; want channel %d, and %g to %g: %+v", got.Channel, worst, c.channel, c.from, c.to, got.All)
			}
		})
	}
}

// Relative errors are of each quarter, and the quarters of equal size.
func TestRelativeErrorsOfQuarters(t *testing.T) {
	t.Parallel()
	comparison := tensor.NewComparison(tensor.Options{Quarters: true})
	for i := range 80 {
		size := []float64{1, 10, 100, 1000}[i%4] * (1 + float64(i/4)/100)
		if err := comparison.Add(i, rowOf(t, []float64{size}), rowOf(t, []float64{size * (1 + float64(i%4)/10)})); err != nil {
			t.Fatal(err)
		}
	}
	for i, q := range comparison.Result().Quarters.All {
		if math.Abs(q.Relative-float64(i)/10) > 1e-12 || q.To > 1.2*q.From {
			t.Errorf("quarter %d: %+v", i, q)
		}
	}
}
