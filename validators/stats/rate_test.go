package stats_test

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"mlpromote.dev/mlpromote/validators/stats"
)

// What the pages of the field print.
func TestKnownCounts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rate, level float64
		want        int
	}{
		{0.01, 0.95, 299}, {0.005, 0.95, 598}, {0.001, 0.95, 2995}, {0.01, 0.99, 459},
		{1, 0.95, 0}, {2, 0.95, 0}, {0, 0.95, math.MaxInt}, {1e-12, 0.95, math.MaxInt},
		{math.NaN(), 0.95, math.MaxInt}, {0.01, 1, math.MaxInt}, {0.01, 0, math.MaxInt}, {0.01, math.NaN(), math.MaxInt},
	} {
		got := stats.CasesFor(c.rate, c.level)
		if got != c.want {
			t.Errorf("CasesFor(%v, %v) is %d, want %d", c.rate, c.level, got, c.want)
		}
		if got > 0 && got < math.MaxInt && stats.UpperRate(0, got-1, c.level) <= c.rate {
			t.Errorf("CasesFor(%v, %v) is %d, and one less is enough", c.rate, c.level, got)
		}
	}
}

func TestHostileArguments(t *testing.T) {
	t.Parallel()
	nan, inf := math.NaN(), math.Inf(1)
	for _, c := range []struct {
		misses float64
		n      int
		level  float64
	}{
		{nan, 10, 0.95}, {-1, 10, 0.95}, {11, 10, 0.95}, {inf, 10, 0.95}, {-inf, 10, 0.95}, {0, 0, 0.95}, {0, -1, 0.95},
		{0, math.MinInt, 0.95}, {0, math.MaxInt, 0.95}, {1, 10, 0}, {1, 10, 1}, {1, 10, -1}, {1, 10, nan}, {1, 10, inf},
	} {
		if got := stats.UpperRate(c.misses, c.n, c.level); got != 1 {
			t.Errorf("UpperRate(%v, %d, %v) is %v, want 1", c.misses, c.n, c.level, got)
		}
		if got := stats.LowerRate(c.misses, c.n, c.level); got != 0 {
			t.Errorf("LowerRate(%v, %d, %v) is %v, want 0", c.misses, c.n, c.level, got)
		}
	}
	for _, c := range []struct {
		lost, won, n int
		level        float64
	}{
		{-1, 0, 10, 0.95}, {0, -1, 10, 0.95}, {6, 5, 10, 0.95}, {0, 0, 0, 0.95}, {0, 0, -5, 0.95}, {1, 1, 10, nan},
		{1, 1, 10, 1}, {math.MaxInt, math.MaxInt, 10, 0.95}, {1, 1, math.MaxInt, 0.95},
	} {
		if low, high := stats.PairedDrop(c.lost, c.won, c.n, c.level); low != -1 || high != 1 {
			t.Errorf("PairedDrop(%d, %d, %d, %v) is %v, %v, want -1, 1", c.lost, c.won, c.n, c.level, low, high)
		}
	}
	for _, c := range []struct {
		over    int
		p, conf float64
	}{
		{-1, 0.99, 0.99}, {0, 1, 0.99}, {0, 0, 0.99}, {0, nan, 0.99}, {0, 0.99, nan}, {0, 0.99, 1}, {math.MaxInt, 0.99, 0.99},
		{0, 1 - 1e-15, 0.99},
	} {
		if got := stats.EarlyStopping(c.over, c.p, c.conf); got != math.MaxInt {
			t.Errorf("EarlyStopping(%d, %v, %v) is %d, want math.MaxInt", c.over, c.p, c.conf, got)
		}
	}
	for _, c := range []struct {
		n        int
		q, level float64
		high     int
	}{{-3, 0.5, 0.95, 1}, {10, nan, 0.95, 11}, {10, 0, 0.95, 11}, {10, 1, 0.95, 11}, {10, 0.5, nan, 11}, {10, 0.5, 1, 11}} {
		if low, high := stats.QuantileBounds(c.n, c.q, c.level); low != 0 || high != c.high {
			t.Errorf("QuantileBounds(%d, %v, %v) is %d, %d, want 0, %d", c.n, c.q, c.level, low, high, c.high)
		}
	}
}

// Bounds enclose the estimate, grow with the misses and apart with the level, and close in with
// more cases.
func TestRateProperties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 5000).Draw(t, "n")
		misses := rapid.Float64Range(0, float64(n)).Draw(t, "misses")
		level := rapid.Float64Range(0.5, 0.999999).Draw(t, "level")
		low, high := stats.LowerRate(misses, n, level), stats.UpperRate(misses, n, level)
		if rate := misses / float64(n); !(0 <= low && low <= rate && rate <= high && high <= 1) {
			t.Fatalf("bounds %v, %v do not enclose %v", low, high, rate)
		}
		more := rapid.Float64Range(misses, float64(n)).Draw(t, "more misses")
		const rounding = 1e-13
		if stats.UpperRate(more, n, level) < high-rounding || stats.LowerRate(more, n, level) < low-rounding {
			t.Fatalf("bounds fall from %v to %v misses", misses, more)
		}
		surer := rapid.Float64Range(level, 0.9999999).Draw(t, "higher level")
		if stats.UpperRate(misses, n, surer) < high-rounding || stats.LowerRate(misses, n, surer) > low+rounding {
			t.Fatalf("bounds close in from level %v to %v", level, surer)
		}
		times := rapid.IntRange(2, 10).Draw(t, "times as many cases")
		k := float64(times)
		if stats.UpperRate(misses*k, n*times, level) > high+rounding || stats.LowerRate(misses*k, n*times, level) < low-rounding {
			t.Fatalf("bounds open with %d times the cases", times)
		}
		if mirror := 1 - stats.UpperRate(float64(n)-misses, n, level); math.Abs(mirror-low) > 1e-10 {
			t.Fatalf("the lower bound of misses is %v, and from the upper one of hits %v", low, mirror)
		}
	})
}

// UpperRate says that it is at least the Stringer bound, which needs the fractions one by one.
func TestFractionsReachStringer(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 300).Draw(t, "n")
		level := rapid.Float64Range(0.6, 0.999).Draw(t, "level")
		fractions := rapid.SliceOfN(rapid.Float64Range(0, 1), 0, min(n, 40)).Draw(t, "fractions")
		slices.Sort(fractions)
		slices.Reverse(fractions)
		stringer, sum := stats.UpperRate(0, n, level), 0.0
		for i, f := range fractions {
			stringer += f * (stats.UpperRate(float64(i+1), n, level) - stats.UpperRate(float64(i), n, level))
			sum += f
		}
		if got := stats.UpperRate(min(sum, float64(n)), n, level); got < stringer-1e-12 {
			t.Fatalf("UpperRate(%v, %d, %v) is %v, below the Stringer bound %v of %v", sum, n, level, got, stringer, fractions)
		}
	})
}

func TestDropEnclosesTheEstimate(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 2000).Draw(t, "n")
		lost := rapid.IntRange(0, n).Draw(t, "lost")
		won := rapid.IntRange(0, n-lost).Draw(t, "won")
		low, high := stats.PairedDrop(lost, won, n, 0.95)
		if drop := float64(lost-won) / float64(n); !(-1 <= low && low <= drop && drop <= high && high <= 1) {
			t.Fatalf("bounds %v, %v do not enclose %v", low, high, drop)
		}
		backLow, backHigh := stats.PairedDrop(won, lost, n, 0.95)
		if math.Abs(backLow+high) > 1e-12 || math.Abs(backHigh+low) > 1e-12 {
			t.Fatalf("bounds %v, %v are those of the reverse, %v, %v, no longer mirrored", low, high, backLow, backHigh)
		}
	})
}

// The smallest number of queries is one that satisfies the formula, and no smaller one does: seen
// from the other side, by the bound of the rate.
func TestEarlyStoppingIsTheBoundOfTheRate(t *testing.T) {
	t.Parallel()
	for _, over := range []int{0, 1, 5, 77} {
		under := stats.EarlyStopping(over, 0.99, 0.99)
		if rate := stats.UpperRate(float64(over), over+under, 0.99); rate > 0.01 {
			t.Errorf("%d over and %d under: the bound of the rate over is %v, want at most 0.01", over, under, rate)
		}
		if rate := stats.UpperRate(float64(over), over+under-1, 0.99); rate <= 0.01 {
			t.Errorf("%d over and %d under: the bound of the rate over is %v already, want above 0.01", over, under-1, rate)
		}
	}
}

// A limit holds by the upper bound of the 99th percentile exactly when it does by MLPerf's formula, so
// that verdicts by either are the same.
func TestEarlyStoppingIsTheBoundOfTheQuantile(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		over := rapid.IntRange(0, 20).Draw(t, "over")
		n := over + rapid.IntRange(0, 3000).Draw(t, "under")
		level := rapid.SampledFrom([]float64{0.9, 0.95, 0.99}).Draw(t, "level")
		_, rank := stats.QuantileBounds(n, 0.99, level)
		byBound := rank <= n-over // the value of that rank is among those that are not above the limit
		if byFormula := n-over >= stats.EarlyStopping(over, 0.99, level); byBound != byFormula {
			t.Fatalf("%d of %d over: %t by the bound of rank %d, %t by the formula", over, n, byBound, rank, byFormula)
		}
	})
}

func TestHolm(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ p, want []float64 }{
		{nil, []float64{}},
		{[]float64{0.04}, []float64{0.04}},
		{[]float64{0.01, 0.04, 0.03}, []float64{0.03, 0.06, 0.06}},
		{[]float64{0.5, 0.5, 0.001, math.NaN()}, []float64{1, 1, 0.004, 1}},
		{[]float64{2, -1}, []float64{1, 0}},
	} {
		if got := stats.Holm(c.p); !slices.EqualFunc(got, c.want, near) {
			t.Errorf("Holm(%v) is %v, want %v", c.p, got, c.want)
		}
	}
}

func FuzzRate(f *testing.F) {
	f.Add(1.5, 300, 0.95)
	f.Add(math.SmallestNonzeroFloat64, 1<<31, 1-1e-16)
	f.Add(0.5, 1, 1e-300)
	f.Fuzz(func(t *testing.T, misses float64, n int, level float64) {
		low, high := stats.LowerRate(misses, n, level), stats.UpperRate(misses, n, level)
		if !(0 <= low && low <= 1 && 0 <= high && high <= 1) {
			t.Errorf("bounds of %v misses in %d at %v are %v, %v, want numbers in [0, 1]", misses, n, level, low, high)
		}
	})
}

func BenchmarkUpperRate(b *testing.B) {
	for _, c := range []struct {
		name   string
		misses float64
		n      int
	}{{"300", 2, 300}, {"10000", 150, 10_000}, {"10000000", 3e6, 10_000_000}} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				stats.UpperRate(c.misses, c.n, 0.95)
			}
		})
	}
}
