package stats

import (
	"math"
	"slices"
	"sort"
)

// QuantileBounds returns the ranks, counted from 1, of the values in ascending order that bound the
// quantile q of the distribution that n independent values come from; each bound is one-sided. A
// rank of 0 or of n+1 means that n values give no such bound. The ranks follow from the binomial
// distribution alone (David and Nagaraja, Order Statistics, 7.1), so they hold for every
// distribution, with ties too. Arguments without meaning give 0 and n+1.
func QuantileBounds(n int, q, level float64) (lowRank, highRank int) {
	n = max(n, 0)
	if n > maxCases || !(q > 0 && q < 1) || !(level > 0 && level < 1) {
		return 0, n + 1
	}
	// atLeast is the probability that at least k of the n values are up to the quantile.
	atLeast := func(k int) (holds, fails float64) {
		if k > n {
			return 0, 1
		}
		return betaTails(q, float64(k), float64(n-k+1))
	}
	lowRank = sort.Search(n, func(i int) bool {
		holds, _ := atLeast(i + 1)
		return holds < level
	})
	highRank = 1 + sort.Search(n, func(i int) bool {
		_, fails := atLeast(i + 1)
		return fails >= level
	})
	return lowRank, highRank
}

// EarlyStopping returns how many queries must be within the latency limit so that, with over
// queries beyond it, a share of percentile of all queries is within it, at the given confidence:
// the smallest h with I(percentile; h, over+1) <= 1-confidence. It is the formula of MLPerf
// Inference ("Early Stopping Criterion" in inference_rules.adoc of mlcommons/inference_policies),
// with d = 0; MLPerf uses a confidence of 0.99. One look at the end is exact; MLPerf looks
// repeatedly and does not correct for it. Arguments without meaning, and those that need more than
// 2^32 queries, give math.MaxInt.
func EarlyStopping(over int, percentile, confidence float64) int {
	if over < 0 || over > maxCases || !(percentile > 0 && percentile < 1) || !(confidence > 0 && confidence < 1) {
		return math.MaxInt
	}
	enough := func(h int) bool {
		late, _ := betaTails(percentile, float64(h), float64(over)+1)
		return late <= 1-confidence
	}
	low, high := 0, 1
	for !enough(high) {
		if low, high = high, 2*high; high > maxCases {
			return math.MaxInt
		}
	}
	return low + 1 + sort.Search(high-low-1, func(i int) bool { return enough(low + 1 + i) })
}

// Holm returns p-values adjusted for making several tests, by Holm's step-down method (Scandinavian
// Journal of Statistics 6, 1979): rejecting those up to alpha makes one or more false rejections
// with a probability of at most alpha, whatever the dependence. NaN counts as 1.
func Holm(p []float64) []float64 {
	order := make([]int, len(p))
	adjusted := make([]float64, len(p))
	for i, value := range p {
		if order[i] = i; value != value {
			value = 1
		}
		adjusted[i] = min(max(value, 0), 1)
	}
	slices.SortStableFunc(order, func(i, j int) int {
		switch {
		case adjusted[i] < adjusted[j]:
			return -1
		case adjusted[i] > adjusted[j]:
			return 1
		}
		return 0
	})
	highest := 0.0
	for rank, i := range order {
		highest = max(highest, min(1, float64(len(p)-rank)*adjusted[i]))
		adjusted[i] = highest
	}
	return adjusted
}
