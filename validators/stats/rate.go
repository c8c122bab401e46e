package stats

import "math"

// maxCases bounds the number of cases that a bound is computed for.
const maxCases = 1 << 32

// UpperRate returns the upper bound of the rate of misses, from misses among n cases: the
// one-sided bound of Clopper and Pearson (Biometrika 26, 1934), the quantile `level` of
// Beta(misses+1, n-misses). For counts it is exact: whatever the rate is, the bound is below it in
// at most 1-level of the samples. Arguments without meaning give 1.
//
// Misses may be a sum of fractions from [0, 1], one for each case. Between whole numbers the bound
// is interpolated. For levels of at least 0.6 that is the largest Stringer bound that fractions
// with this sum can have, because each further miss raises the bound by less. Auditors use the
// Stringer bound. It is proven conservative for large n (Pap and van Zuijlen, Statistica
// Neerlandica 50, 1996); for small n no counterexample is known, but no proof either.
func UpperRate(misses float64, n int, level float64) float64 {
	if !valid(misses, n, level) {
		return 1
	}
	whole, part := math.Modf(misses)
	if part == 0 {
		return upperRate(whole, float64(n), level)
	}
	return (1-part)*upperRate(whole, float64(n), level) + part*upperRate(whole+1, float64(n), level)
}

// LowerRate returns the lower bound of the rate of misses: 1 less the upper bound of the rate of
// hits, see [UpperRate]. Arguments without meaning give 0.
func LowerRate(misses float64, n int, level float64) float64 {
	if !valid(misses, n, level) {
		return 0
	}
	whole, part := math.Modf(misses)
	if part == 0 {
		return lowerRate(whole, float64(n), level)
	}
	return (1-part)*lowerRate(whole, float64(n), level) + part*lowerRate(whole+1, float64(n), level)
}

// upperRate is the upper bound for a whole number of misses.
func upperRate(misses, n, level float64) float64 {
	switch misses {
	case 0:
		return -math.Expm1(math.Log1p(-level) / n)
	case n:
		return 1
	}
	return betaQuantile(misses+1, n-misses, 1-level, true)
}

// lowerRate is the lower bound for a whole number of misses.
func lowerRate(misses, n, level float64) float64 {
	switch misses {
	case 0:
		return 0
	case n:
		return math.Exp(math.Log1p(-level) / n)
	}
	return betaQuantile(misses, n-misses+1, 1-level, false)
}

// valid reports whether a bound can be computed; no comparison with NaN holds.
func valid(misses float64, n int, level float64) bool {
	return n > 0 && n <= maxCases && misses >= 0 && misses <= float64(n) && level > 0 && level < 1
}

// CasesFor returns how many cases without a miss prove that the rate of misses is at most rate: the
// smallest n with UpperRate(0, n, level) <= rate. It is 0 for a rate of 1, which needs no proof,
// and math.MaxInt where no number of cases that this package computes with is enough, such as for a
// rate of 0.
func CasesFor(rate, level float64) int {
	if rate >= 1 {
		return 0
	}
	low, high := 0, maxCases // not enough; enough, if any is
	if !(rate > 0) || !(UpperRate(0, high, level) <= rate) {
		return math.MaxInt
	}
	for low+1 < high {
		if middle := low + (high-low)/2; UpperRate(0, middle, level) <= rate {
			high = middle
		} else {
			low = middle
		}
	}
	return high
}

// PairedDrop returns the one-sided bounds of (lost-won)/n, the drop of accuracy of an engine
// against the reference model on the same n cases. Lost counts the cases that the reference model
// gets right and the engine wrong, won the reverse. Each bound is made of two bounds of Clopper and
// Pearson with half of the error each, so by Boole's inequality it is conservative for every
// dependence between the two counts. Newcombe (Statistics in Medicine 17, 1998) and Tango (same
// volume) have narrower intervals that are approximate. Arguments without meaning give -1 and 1.
func PairedDrop(lost, won, n int, level float64) (lower, upper float64) {
	if lost < 0 || won < 0 || n < 1 || lost > n-won || !(level > 0 && level < 1) {
		return -1, 1
	}
	half := 1 - (1-level)/2
	l, w := float64(lost), float64(won)
	return LowerRate(l, n, half) - UpperRate(w, n, half), UpperRate(l, n, half) - LowerRate(w, n, half)
}

// PairedLoss returns the one-sided upper bound of the mean loss of cases, less their mean gain, if a case loses or gains at most
// most. Lost and won are the sums over n cases. It is the bound of [PairedDrop] for sums of fractions: see [UpperRate].
// It rises with lost, falls with won, and without a difference it is the share of cases that may differ unseen, times
// the most that one can lose.
func PairedLoss(lost, won, most float64, n int, level float64) float64 {
	if !(most > 0) {
		return 0
	}
	half := 1 - (1-level)/2
	part := func(sum float64) float64 { return max(0, min(sum/most, float64(n))) }
	return most * (UpperRate(part(lost), n, half) - LowerRate(part(won), n, half))
}

// PairedRatio returns the one-sided bounds of the accuracy of an engine over that of the reference
// model on the same n cases, with right of them right in the reference model: 1 less the drop, see
// [PairedDrop], over the accuracy of the reference model. Each of the two has half of the error, so
// that the bounds are conservative. Arguments without meaning give 0 and +Inf.
func PairedRatio(lost, won int, right float64, n int, level float64) (lower, upper float64) {
	if !valid(right, n, level) || lost < 0 || won < 0 || float64(lost) > math.Ceil(right) || lost > n-won {
		return 0, math.Inf(1)
	}
	half := 1 - (1-level)/2
	least, most := PairedDrop(lost, won, n, half)
	low, high := LowerRate(right, n, half), UpperRate(right, n, half) // of the right answers
	over := func(drop, small, large float64) float64 {
		if drop < 0 {
			small = large
		}
		return 1 - drop/small
	}
	return max(0, over(most, low, high)), over(least, high, low)
}
