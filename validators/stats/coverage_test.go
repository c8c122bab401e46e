package stats_test

import (
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"mlpromote.dev/mlpromote/validators/stats"
)

// soak gives the number of simulations: few here, many with MLPROMOTE_SOAK.
func soak(usual, long int) int {
	if os.Getenv("MLPROMOTE_SOAK") != "" {
		return long
	}
	return usual
}

// coverage counts how many bounds of simulated samples are on the right side of the true value.
type coverage struct{ lower, upper, runs int }

func (c *coverage) add(low, high, truth float64) {
	c.runs++
	if low <= truth {
		c.lower++
	}
	if high >= truth {
		c.upper++
	}
}

// atLeast fails if a side covers so rarely that a true coverage of want gives that by chance less
// than once in a million.
func (c *coverage) atLeast(t *testing.T, want float64) {
	t.Helper()
	for side, covered := range map[string]int{"lower": c.lower, "upper": c.upper} {
		if possible := stats.UpperRate(float64(covered), c.runs, 1-1e-6); possible < want {
			t.Errorf("the %s bound covered the true value in %d of %d simulations, want %v of them",
				side, covered, c.runs, want)
		}
	}
}

func TestCoverageOfRates(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		n    int
		rate float64
		draw func(*rand.Rand) float64 // a miss, or a fraction of one, with this mean
	}{
		{"rare misses", 300, 0.01, func(r *rand.Rand) float64 { return count(r.Float64() < 0.01) }},
		{"frequent misses", 100, 0.3, func(r *rand.Rand) float64 { return count(r.Float64() < 0.3) }},
		{"the rate where 299 prove it", 299, 0.01, func(r *rand.Rand) float64 { return count(r.Float64() < 0.01) }},
		{"uniform fractions", 50, 0.5, func(r *rand.Rand) float64 { return r.Float64() }},
		{"rare halves", 200, 0.01, func(r *rand.Rand) float64 { return count(r.Float64() < 0.02) / 2 }},
		{"rare small fractions", 100, 0.005, func(r *rand.Rand) float64 { return count(r.Float64() < 0.05) / 10 }},
		{"mostly nearly all", 60, 0.9, func(r *rand.Rand) float64 { return 1 - count(r.Float64() < 0.2)/2 }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(1, 2))
			var covered coverage
			for range soak(2000, 200_000) {
				misses := 0.0
				for range c.n {
					misses += c.draw(r)
				}
				covered.add(stats.LowerRate(misses, c.n, 0.95), stats.UpperRate(misses, c.n, 0.95), c.rate)
			}
			covered.atLeast(t, 0.95)
		})
	}
}

func count(miss bool) float64 {
	if miss {
		return 1
	}
	return 0
}

func TestCoverageOfDrops(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name      string
		n         int
		lost, won float64
	}{
		{"no drop", 300, 0.02, 0.02}, {"a drop", 500, 0.05, 0.01}, {"a gain", 100, 0.01, 0.1}, {"only losses", 60, 0.05, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(3, 4))
			var covered coverage
			for range soak(1000, 100_000) {
				lost, won := 0, 0
				for range c.n {
					switch u := r.Float64(); {
					case u < c.lost:
						lost++
					case u < c.lost+c.won:
						won++
					}
				}
				low, high := stats.PairedDrop(lost, won, c.n, 0.95)
				covered.add(low, high, c.lost-c.won)
			}
			covered.atLeast(t, 0.95)
		})
	}
}

// The bootstrap is approximate: a strong skew with few values costs it some of its level, on the
// side of the long tail. The wanted coverage of each line says how much.
func TestCoverageOfMeans(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		n    int
		mean float64
		draw func(*rand.Rand) float64
		want float64
	}{
		{"normal", 30, 0, func(r *rand.Rand) float64 { return r.NormFloat64() }, 0.94},
		{"exponential", 30, 1, func(r *rand.Rand) float64 { return r.ExpFloat64() }, 0.93},
		{"lognormal", 50, math.Exp(0.5), func(r *rand.Rand) float64 { return math.Exp(r.NormFloat64()) }, 0.9},
		{"one miss in ten", 60, 0.1, func(r *rand.Rand) float64 { return count(r.Float64() < 0.1) }, 0.93},
		{"eight values", 8, 5, func(r *rand.Rand) float64 { return 5 + r.NormFloat64() }, 0.94},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(5, 6))
			var covered coverage
			for seed := range soak(250, 10_000) {
				values := make([]float64, c.n)
				for i := range values {
					values[i] = c.draw(r)
				}
				low, high := stats.MeanBounds(values, 0.95, uint64(seed))
				covered.add(low, high, c.mean)
			}
			covered.atLeast(t, c.want)
		})
	}
}

// blocks simulates what processes measure: each is faster or slower as a whole, and within it
// samples have a tail to the slow side.
func blocks(r *rand.Rand, n, samples int, median, between float64) [][]float64 {
	all := make([][]float64, n)
	for i := range all {
		level := median * math.Exp(between*r.NormFloat64())
		for range samples {
			all[i] = append(all[i], level*math.Exp(0.05*r.ExpFloat64()))
		}
	}
	return all
}

func TestCoverageOfRatios(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name      string
		n, others int
		between   float64
	}{
		{"processes alike", 10, 10, 0}, {"processes differ", 10, 10, 0.1}, {"six blocks", 6, 6, 0.05}, {"other counts", 12, 8, 0.05},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(7, 8))
			var covered coverage
			for seed := range soak(60, 3000) {
				low, high := stats.RatioBounds(blocks(r, c.n, 20, 1.1, c.between), blocks(r, c.others, 20, 1, c.between), 0.95, uint64(seed))
				covered.add(low, high, 1.1)
			}
			covered.atLeast(t, 0.95)
		})
	}
}

func TestCoverageOfQuantiles(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		n int
		q float64
	}{{20, 0.5}, {299, 0.99}, {1000, 0.9}} {
		r := rand.New(rand.NewPCG(9, 10))
		var covered coverage
		for range soak(1000, 50_000) {
			values := make([]float64, c.n)
			for i := range values {
				values[i] = r.Float64() // its quantile q is q
			}
			slices.Sort(values)
			low, high := stats.QuantileBounds(c.n, c.q, 0.95)
			values = append(append([]float64{math.Inf(-1)}, values...), math.Inf(1))
			covered.add(values[low], values[high], c.q)
		}
		covered.atLeast(t, 0.95)
	}
}

// Differences of which most are 0: too few others for the bootstrap.
func TestCoverageOfRangedMeans(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name      string
		n         int
		lost, won float64
		want      float64
	}{
		{"few differ", 300, 0.01, 0.01, 0.95}, {"one of many", 300, 0.003, 0, 0.95}, {"some differ", 300, 0.05, 0.05, 0.92}, {"only losses", 200, 0.15, 0, 0.93},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(11, 12))
			var covered coverage
			for seed := range soak(100, 5_000) {
				values := make([]float64, c.n)
				for i := range values {
					u := r.Float64()
					values[i] = count(u < c.lost) - count(u >= c.lost && u < c.lost+c.won)
				}
				low, high := stats.RangedMean(values, -1, 1, 0.95, uint64(seed))
				covered.add(low, high, c.lost-c.won)
			}
			covered.atLeast(t, c.want)
		})
	}
}

func TestCoverageOfRelativeAccuracy(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(13, 14))
	var covered coverage
	for range soak(1000, 50_000) {
		lost, won, right := 0, 0, 0
		for range 400 {
			switch u := r.Float64(); {
			case u < 0.03:
				lost, right = lost+1, right+1
			case u < 0.04:
				won++
			case u < 0.9:
				right++
			}
		}
		low, high := stats.PairedRatio(lost, won, float64(right), 400, 0.95)
		covered.add(low, high, 0.87/0.89)
	}
	covered.atLeast(t, 0.95)
}

func TestRangedMeanProvesNothing(t *testing.T) {
	t.Parallel()
	ok := make([]float64, 8)
	for name, c := range map[string]struct {
		values      []float64
		least, most float64
		level       float64
	}{
		"seven values": {ok[:7], -1, 1, 0.95}, "a value below": {append([]float64{-2}, ok...), -1, 1, 0.95}, "a value above": {append([]float64{2}, ok...), -1, 1, 0.95},
		"NaN": {append([]float64{math.NaN()}, ok...), -1, 1, 0.95}, "no range": {ok, math.Inf(-1), 1, 0.95}, "no level": {ok, -1, 1, 1},
	} {
		if low, high := stats.RangedMean(c.values, c.least, c.most, c.level, 1); !math.IsInf(low, -1) || !math.IsInf(high, 1) {
			t.Errorf("%s: bounds %v and %v, want none", name, low, high)
		}
	}
	half := stats.UpperRate(0, 8, 0.975)
	if low, high := stats.RangedMean(ok, -1, 2, 0.95, 1); low != -half || high != 2*half {
		t.Errorf("eight zeros in [-1, 2]: %v and %v, want %v and %v", low, high, -half, 2*half)
	}
}

// A value beyond the range by no more than its rounding is at its end.
func TestRangedMeanOfRoundedValues(t *testing.T) {
	t.Parallel()
	values := make([]float64, 100)
	for i := range values {
		values[i] = float64(i%2) * (1 + 1e-15)
	}
	if low, high := stats.RangedMean(values, 0, 1, 0.95, 1); !(low > 0.3 && high < 0.7) {
		t.Errorf("bounds %g to %g, want them near a half", low, high)
	}
	values[0] = 2
	if low, high := stats.RangedMean(values, 0, 1, 0.95, 1); !math.IsInf(low, -1) || !math.IsInf(high, 1) {
		t.Errorf("bounds %g to %g of a value out of the range, want none", low, high)
	}
}
