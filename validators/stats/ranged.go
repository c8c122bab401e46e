package stats

import (
	"math"
	"slices"
)

// minOthers is how many values have to differ from the median before [RangedMean] trusts the
// bootstrap: with 6 of 300, nine of ten bounds are right where 19 of 20 should be.
const minOthers = 20

// RangedMean returns the one-sided bounds of the mean of the distribution that the values, one for
// each case, come from, if no value can be below least or above most. They come from
// [MeanBounds] if at least 20 values differ from the median and it has any. Otherwise the bounds
// are Stringer's, see [UpperRate]: the distances of the values above and below their median are fractions of the
// largest possible ones, each bounded with half of the error.
//
// The result does not depend on the order of the values. Fewer than 8 values, values that are not
// finite, and values outside of the range give -Inf and +Inf.
func RangedMean(values []float64, least, most, level float64, seed uint64) (lower, upper float64) {
	return rangedMean(values, least, most, level, func(sorted []float64) (lower, upper float64) { return MeanBounds(sorted, level, seed) })
}

// StringerMean is [RangedMean] without the bootstrap. It is for means that a few values decide: the spread of the
// others tells nothing about them.
func StringerMean(values []float64, least, most, level float64) (lower, upper float64) {
	return rangedMean(values, least, most, level, nil)
}

// rangedMean is RangedMean with a bootstrap of the values in ascending order; nil for none.
func rangedMean(values []float64, least, most, level float64, bootstrap func([]float64) (lower, upper float64)) (lower, upper float64) {
	n := len(values)
	sorted := slices.Sorted(slices.Values(values)) // NaN first
	least, most = rounded(sorted, least, most)
	if n < minValues || !(level > 0 && level < 1) || !(sorted[0] >= least && sorted[n-1] <= most) ||
		math.IsInf(least, -1) || math.IsInf(most, 1) {
		return math.Inf(-1), math.Inf(1)
	}
	center, half := sorted[n/2], 1-(1-level)/2
	var above, below float64 // sums of fractions
	others := 0
	for _, v := range sorted {
		switch {
		case v > center:
			others, above = others+1, above+(v-center)/(most-center)
		case v < center:
			others, below = others+1, below+(center-v)/(center-least)
		}
	}
	lower, upper = math.Inf(-1), math.Inf(1)
	if bootstrap != nil && others >= min(minOthers, n-1) {
		lower, upper = bootstrap(sorted)
	}
	rate := func(bound func(float64, int, float64) float64, fractions, size float64) float64 {
		if size == 0 {
			return 0
		}
		return size * bound(min(fractions, float64(n)), n, half)
	}
	if math.IsInf(lower, -1) {
		lower = center + rate(LowerRate, above, most-center) - rate(UpperRate, below, center-least)
	}
	if math.IsInf(upper, 1) {
		upper = center + rate(UpperRate, above, most-center) - rate(LowerRate, below, center-least)
	}
	return lower, upper
}

// rounded widens a range to values that are beyond it by no more than their rounding.
func rounded(sorted []float64, least, most float64) (float64, float64) {
	if len(sorted) == 0 {
		return least, most
	}
	slack := 1e-9 * (most - least)
	if first := sorted[0]; first >= least-slack {
		least = min(least, first)
	}
	if last := sorted[len(sorted)-1]; last <= most+slack {
		most = max(most, last)
	}
	return least, most
}
