package performance_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"mlpromote.dev/mlpromote/validators/performance"
)

func TestSummarizeNearestRank(t *testing.T) {
	t.Parallel()
	samples := make([]int64, 100)
	for i := range samples {
		samples[i] = int64(100-i) * 1000
	}
	got := performance.Summarize(samples, 2)
	if got.P50Ns != 50_000 || got.P90Ns != 90_000 || got.P99Ns != 99_000 || got.Samples != 100 || got.Batch != 2 {
		t.Errorf("got %+v", got)
	}
	// 100 runs of 2 cases in 5.05 ms.
	if want := 200 / 5.05e-3; got.PerSecond < want*0.999 || got.PerSecond > want*1.001 {
		t.Errorf("per second: got %v, want %v", got.PerSecond, want)
	}
	if samples[0] != 100_000 {
		t.Error("the samples were reordered")
	}
}

func TestSummarizeNothing(t *testing.T) {
	t.Parallel()
	if got := performance.Summarize(nil, 1); got.Samples != 0 || got.P99Ns != 0 {
		t.Errorf("got %+v", got)
	}
}

func TestQuantilesAreSamplesInOrder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		samples := rapid.SliceOfN(rapid.Int64Range(1, 1e12), 1, 300).Draw(t, "samples")
		got := performance.Summarize(samples, 1)
		for _, q := range []int64{got.P50Ns, got.P90Ns, got.P99Ns} {
			if !slices.Contains(samples, q) {
				t.Fatalf("%d is no sample", q)
			}
		}
		if got.P50Ns > got.P90Ns || got.P90Ns > got.P99Ns || got.P99Ns > slices.Max(samples) {
			t.Fatalf("out of order: %+v", got)
		}
	})
}

// A clock that did not move gives no rate, rather than an infinite one.
func TestSummarizeSamplesOfNoTime(t *testing.T) {
	t.Parallel()
	got := performance.Summarize([]int64{0, 0}, 1)
	if got.PerSecond != 0 || got.Samples != 2 {
		t.Errorf("%g per second of %d samples, want 0 of 2", got.PerSecond, got.Samples)
	}
}
