package stats_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"mlpromote.dev/mlpromote/validators/stats"
)

// The quantiles are those of tables of the F distribution.
func TestUpperNoiseOfTables(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ few, many, level, want float64 }{
		{1, 10, 0.95, 4.965}, {5, 10, 0.95, 3.326}, {10, 20, 0.99, 3.368}, {8, 120, 0.99, 2.663}, {2, 2, 0.95, 19.0},
	} {
		if got := stats.UpperNoise(c.few, c.many, c.level); math.Abs(got-c.want) > 1e-3*c.want {
			t.Errorf("UpperNoise(%v, %v, %v) is %v, want %v", c.few, c.many, c.level, got, c.want)
		}
	}
	for _, c := range [][3]float64{{0, 8, 0.95}, {8, -1, 0.95}, {8, 8, 1}, {math.NaN(), 8, 0.95}, {math.Inf(1), 8, 0.95}} {
		if got := stats.UpperNoise(c[0], c[1], c[2]); got != 1 {
			t.Errorf("UpperNoise of %v is %v, want 1, which allows nothing more", c, got)
		}
	}
}

// The noise of eight of 400 cases exceeds the bound about as seldom as it says, also where it is far from
// normal: a case in ten has errors that are five times as large.
func TestUpperNoiseCovers(t *testing.T) {
	t.Parallel()
	const cases, few, runs, level = 400, 8, 4000, 0.99
	random := rand.New(rand.NewPCG(11, 3))
	for name, size := range map[string]func() float64{
		"normal":       func() float64 { return 1 },
		"heavy-tailed": func() float64 { return 1 + 4*math.Floor(random.Float64()+0.1) },
	} {
		above := 0
		for range runs {
			var sum, squares, some float64
			for n := range cases {
				e := size() * random.NormFloat64()
				if n < few {
					some += e * e / few
				}
				sum, squares = sum+e*e/cases, squares+e*e*e*e/cases
			}
			degrees := 2 * sum * sum / (squares - sum*sum)
			if some > sum*stats.UpperNoise(few*degrees, cases*degrees, level) {
				above++
			}
		}
		if share := float64(above) / runs; share > 2*(1-level) {
			t.Errorf("%s: noise is above the bound in %.2f %% of the runs, want at most twice %.0f %%", name, 100*share, 100*(1-level))
		}
	}
}
