package stats_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"mlpromote.dev/mlpromote/validators/stats"
)

// The same bits on every platform and with every version of Go: reports name the seed.
func TestBootstrapBits(t *testing.T) {
	t.Parallel()
	values := []float64{1, 2, 3, 5, 8, 13, 21, 34, 55, 89}
	if low, high := stats.MeanBounds(values, 0.95, 7); low != meanLow || high != meanHigh {
		t.Errorf("MeanBounds is %v, %v, want %v, %v", low, high, meanLow, meanHigh)
	}
	var a, b [][]float64
	for i := range 8 {
		f := float64(i)
		a = append(a, []float64{100 + f, 110 + f, 120 - f, 117})
		b = append(b, []float64{90 + f, 101 - f, 111})
	}
	if low, high := stats.RatioBounds(a, b, 0.95, 7); low != ratioLow || high != ratioHigh {
		t.Errorf("RatioBounds is %v, %v, want %v, %v", low, high, ratioLow, ratioHigh)
	}
}

const (
	meanLow, meanHigh   = 10.484594190190785, 58.93283486398468
	ratioLow, ratioHigh = 1.045045045045045, 1.2157894736842105
)

func TestMeanBounds(t *testing.T) {
	t.Parallel()
	values := []float64{0.1, 0.4, 0.2, 0.3, 0.9, 0.5, 0.3, 0.2, 0.6, 0.1}
	low, high := stats.MeanBounds(values, 0.95, 1)
	if !(low < 0.36 && 0.36 < high) {
		t.Errorf("bounds %v, %v do not enclose the mean 0.36", low, high)
	}
	if wideLow, wideHigh := stats.MeanBounds(values, 0.99, 1); !(wideLow < low && high < wideHigh) {
		t.Errorf("bounds at 0.99 are %v, %v, want wider than %v, %v at 0.95", wideLow, wideHigh, low, high)
	}
	huge := slices.Clone(values)
	for i := range huge {
		huge[i] *= 0x1p1020 // a power of two, so that nothing is rounded
	}
	if l, h := stats.MeanBounds(huge, 0.95, 1); l != low*0x1p1020 || h != high*0x1p1020 {
		t.Errorf("bounds of huge values are %v, %v, want %v, %v times 2^1020", l, h, low, high)
	}
}

func TestMeanBoundsClaimNothing(t *testing.T) {
	t.Parallel()
	ten := func(v ...float64) []float64 { return append(v, make([]float64, 10-len(v))...) }
	for _, c := range []struct {
		name   string
		values []float64
		level  float64
	}{
		{"no values", nil, 0.95},
		{"seven values", []float64{1, 2, 3, 4, 5, 6, 7}, 0.95},
		{"all zero", ten(), 0.95},
		{"all equal", slices.Repeat([]float64{0.1}, 1000), 0.95},
		{"NaN", ten(math.NaN()), 0.95},
		{"infinite", ten(math.Inf(1)), 0.95},
		{"minus infinite", ten(1, math.Inf(-1)), 0.95},
		{"level 0", ten(1, 2), 0}, {"level 1", ten(1, 2), 1}, {"level NaN", ten(1, 2), math.NaN()},
	} {
		if low, high := stats.MeanBounds(c.values, c.level, 1); !math.IsInf(low, -1) || !math.IsInf(high, 1) {
			t.Errorf("%s: bounds are %v, %v, want -Inf, +Inf", c.name, low, high)
		}
	}
	// One miss among 300: in a third of the resamples it is missing, so it proves no upper bound.
	one := make([]float64, 300)
	one[17] = 1
	if low, high := stats.MeanBounds(one, 0.95, 1); !(low <= 1.0/300) || !math.IsInf(high, 1) {
		t.Errorf("one miss: bounds are %v, %v, want one below the mean, and +Inf", low, high)
	}
}

func TestRatioBounds(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 1))
	slow, fast := blocks(r, 12, 40, 1.2, 0.01), blocks(r, 12, 40, 1, 0.01)
	low, high := stats.RatioBounds(slow, fast, 0.95, 1)
	if !(1.15 < low && low < 1.2 && 1.2 < high && high < 1.25) {
		t.Errorf("bounds are %v, %v, want them close around 1.2", low, high)
	}
	backLow, backHigh := stats.RatioBounds(fast, slow, 0.95, 1)
	if math.Abs(backLow*high-1) > 0.01 || math.Abs(backHigh*low-1) > 0.01 {
		t.Errorf("bounds of the inverse are %v, %v, want about 1/%v, 1/%v", backLow, backHigh, high, low)
	}
	// A drift that both sides of a pair meet is not noise of their ratio.
	for i := range slow {
		for j := range slow[i] {
			slow[i][j] *= 1 + float64(i)/4
			fast[i][j] *= 1 + float64(i)/4
		}
	}
	if l, h := stats.RatioBounds(slow, fast, 0.95, 1); h-l > 0.5 {
		t.Errorf("with a drift of both the bounds are %v, %v, want them as close as pairs are", l, h)
	}
}

func TestRatioBoundsClaimNothing(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 1))
	good := blocks(r, 8, 10, 1, 0.1)
	with := func(v float64) [][]float64 {
		changed := slices.Clone(good)
		changed[3] = []float64{1, v}
		return changed
	}
	constant := slices.Repeat([][]float64{{2, 2}}, 8)
	for _, c := range []struct {
		name  string
		a, b  [][]float64
		level float64
	}{
		{"nothing", nil, nil, 0.95},
		{"five blocks", good[:5], good, 0.95}, {"five blocks beside", good, good[:5], 0.95},
		{"empty block", append(slices.Clone(good), nil), good, 0.95},
		{"zero", with(0), good, 0.95}, {"negative", good, with(-1), 0.95},
		{"NaN", with(math.NaN()), good, 0.95}, {"infinite", with(math.Inf(1)), good, 0.95},
		{"constant", constant, constant, 0.95},
		{"level 1", good, good, 1}, {"level NaN", good, good, math.NaN()},
	} {
		if low, high := stats.RatioBounds(c.a, c.b, c.level, 1); low != 0 || !math.IsInf(high, 1) {
			t.Errorf("%s: bounds are %v, %v, want 0, +Inf", c.name, low, high)
		}
	}
}

func BenchmarkMeanBounds(b *testing.B) {
	values := blocks(rand.New(rand.NewPCG(1, 1)), 1, 1000, 1, 0)[0]
	for b.Loop() {
		stats.MeanBounds(values, 0.95, 1)
	}
}

func BenchmarkRatioBounds(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 1))
	left, right := blocks(r, 10, 100, 1, 0.1), blocks(r, 10, 100, 1, 0.1)
	for b.Loop() {
		stats.RatioBounds(left, right, 0.95, 1)
	}
}
