// Package performance computes latencies from timings. It does not measure anything itself.
package performance

import (
	"math"
	"slices"

	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/validators/stats"
)

// Summarize returns the latency quantiles of samples in nanoseconds, each the duration of one
// run with batch cases. A quantile is by nearest rank: the smallest sample such that at least
// that share of all samples is not larger. No samples give the zero Latency.
func Summarize(samples []int64, batch int64) evidence.Latency {
	if len(samples) == 0 {
		return evidence.Latency{}
	}
	sorted := slices.Clone(samples)
	slices.Sort(sorted)
	var sum float64
	for _, s := range sorted {
		sum += float64(s)
	}
	latency := evidence.Latency{
		Batch: batch, Samples: len(sorted),
		P50Ns: quantile(sorted, 0.50), P90Ns: quantile(sorted, 0.90), P99Ns: quantile(sorted, 0.99),
	}
	if sum > 0 {
		latency.PerSecond = float64(batch) * float64(len(sorted)) * 1e9 / sum
	}
	return latency
}

// Bounds returns one-sided bounds of the quantiles of samples, see [stats.QuantileBounds]; nil
// without samples.
func Bounds(samples []int64, confidence float64) *evidence.LatencyBounds {
	if len(samples) == 0 {
		return nil
	}
	sorted := slices.Sorted(slices.Values(samples))
	at := func(rank int) int64 {
		if rank < 1 || rank > len(sorted) {
			return 0
		}
		return sorted[rank-1]
	}
	bounds := &evidence.LatencyBounds{Confidence: evidence.Figure(confidence)}
	low, high := stats.QuantileBounds(len(sorted), 0.50, confidence)
	bounds.P50LowNs, bounds.P50HighNs = at(low), at(high)
	low, high = stats.QuantileBounds(len(sorted), 0.99, confidence)
	bounds.P99LowNs, bounds.P99HighNs = at(low), at(high)
	return bounds
}

// P999 returns the 99.9th percentile of samples by nearest rank; 0 without samples.
func P999(samples []int64) int64 {
	if len(samples) == 0 {
		return 0
	}
	return quantile(slices.Sorted(slices.Values(samples)), 0.999)
}

func quantile(sorted []int64, q float64) int64 {
	rank := int(math.Ceil(q * float64(len(sorted))))
	return sorted[max(rank, 1)-1]
}
