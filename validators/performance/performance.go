// Package performance computes latencies from timings. It does not measure anything itself.
package performance

import (
	"math"
	"slices"

	"mlpromote.dev/mlpromote/registry"
)

// Summarize returns the latency quantiles of samples in nanoseconds, each the duration of one
// run with batch cases. A quantile is by nearest rank: the smallest sample such that at least
// that share of all samples is not larger. No samples give the zero Latency.
func Summarize(samples []int64, batch int64) registry.Latency {
	if len(samples) == 0 {
		return registry.Latency{}
	}
	sorted := slices.Clone(samples)
	slices.Sort(sorted)
	var sum float64
	for _, s := range sorted {
		sum += float64(s)
	}
	latency := registry.Latency{
		Batch: batch, Samples: len(sorted),
		P50Ns: quantile(sorted, 0.50), P90Ns: quantile(sorted, 0.90), P99Ns: quantile(sorted, 0.99),
	}
	if sum > 0 {
		latency.PerSecond = float64(batch) * float64(len(sorted)) * 1e9 / sum
	}
	return latency
}

func quantile(sorted []int64, q float64) int64 {
	rank := int(math.Ceil(q * float64(len(sorted))))
	return sorted[max(rank, 1)-1]
}
