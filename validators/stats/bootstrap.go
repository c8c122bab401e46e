package stats

import (
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
)

// Where the bootstrap says nothing, because it sees too little of the variation.
const (
	minValues = 8 // of MeanBounds
	minBlocks = 6 // of RatioBounds, on each side
)

// draws makes random indexes. The methods of rand.Rand may change with Go's version, those of
// rand.PCG may not.
type draws struct{ source *rand.PCG }

func newDraws(seed uint64) draws { return draws{rand.NewPCG(seed, 0x6d6c70726f6d6f74)} } // "mlpromot"

// below returns an index in [0, n), each equally likely up to n/2^64.
func (d draws) below(n int) int {
	high, _ := bits.Mul64(d.source.Uint64(), uint64(n))
	return int(high)
}

// resamples is how often n values are drawn again: 10,000 times, less often where that takes
// more than about a second.
func resamples(n int) int { return min(10_000, max(1_000, 100_000_000/n)) }

// MeanBounds returns the one-sided bounds of the mean of the distribution that the values, one for
// each case, come from: bootstrap-t (Efron and Tibshirani, An Introduction to the Bootstrap, 1993,
// 12.5), which corrects for skew and covers better for small n than percentiles of the means do.
// Elements of one case depend on each other; pass one value for each case.
//
// Fewer than 8 values, values that are all equal, and values that are not finite have the bounds -Inf
// and +Inf. So does one side where too many of the resamples have
// equal values, as with one miss among many cases: for values from a known range use [UpperRate] of
// their sum.
func MeanBounds(values []float64, level float64, seed uint64) (lower, upper float64) {
	lower, upper = math.Inf(-1), math.Inf(1)
	n := len(values)
	scale := 0.0
	for _, v := range values {
		scale = max(scale, math.Abs(v)) // NaN stays
	}
	if n < minValues || !(level > 0 && level < 1) || !(scale > 0) || math.IsInf(scale, 1) {
		return lower, upper
	}
	s := newStudent(values, scale)
	spread := s.spread(0, s.squares)
	if spread == 0 {
		return lower, upper
	}
	t := s.resample(newDraws(seed))
	slices.Sort(t)
	// Rounded so that the bound is the wider of two candidates.
	low := int((1 - level) * float64(len(t)))
	lower = s.bound(t[len(t)-1-low], spread)
	upper = s.bound(t[low], spread)
	return lower, upper
}

// student is values on their way to a distribution of t: deviations from their mean and the squares
// of these, in units of scale. Products are rounded before they are added (the conversions forbid
// fused operations), so that all platforms get the same bits.
type student struct {
	mean, scale        float64
	deviation, squared []float64
	squares            float64 // sum of squared
}

func newStudent(values []float64, scale float64) student {
	s := student{scale: scale, deviation: make([]float64, len(values)), squared: make([]float64, len(values))}
	for _, v := range values {
		s.mean += v / scale
	}
	s.mean /= float64(len(values))
	for i, v := range values {
		d := float64(v/scale) - s.mean
		s.deviation[i], s.squared[i] = d, float64(d*d)
		s.squares += s.squared[i]
	}
	return s
}

// spread is the standard error of the mean of a sample with these sums, 0 where rounding is all
// that varies.
func (s student) spread(sum, squares float64) float64 {
	n := float64(len(s.deviation))
	rest := squares - float64(sum*sum)/n
	if rest <= 1e-12*squares || rest <= 1e-28*n {
		return 0
	}
	return math.Sqrt(rest / (n - 1) / n)
}

// resample returns t of many resamples: how far their means are from that of the values, in
// units of their own standard errors.
func (s student) resample(d draws) []float64 {
	n := len(s.deviation)
	t := make([]float64, resamples(n))
	for i := range t {
		sum, squares := 0.0, 0.0
		for range n {
			k := d.below(n)
			sum += s.deviation[k]
			squares += s.squared[k]
		}
		if spread := s.spread(sum, squares); spread > 0 {
			t[i] = sum / float64(n) / spread
		} else {
			t[i] = side(sum/float64(n), i)
		}
	}
	return t
}

// side is t of a resample whose values are all equal: it says nothing but on which side of the mean
// they are, and on the mean itself not even that, so every other one is taken for either side.
func side(mean float64, i int) float64 {
	if mean < -1e-12 || (mean <= 1e-12 && i%2 == 0) {
		return math.Inf(-1)
	}
	return math.Inf(1)
}

// bound is the end of the interval that belongs to a quantile of t.
func (s student) bound(t, spread float64) float64 { return (s.mean - float64(t*spread)) * s.scale }
