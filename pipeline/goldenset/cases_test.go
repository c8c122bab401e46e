package goldenset

import (
	"slices"
	"testing"

	"mlpromote.dev/mlpromote/registry/artifact"
)

// The first cases of a sample are spread over all cases, and a sample of all has each once.
func TestSampleOf(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ count, n int }{{1, 1}, {3, 64}, {64, 64}, {300, 64}, {100_000, 64}, {10, 4}} {
		got := Sample(c.count, c.n)
		sorted := slices.Sorted(slices.Values(got))
		if want := min(c.count, c.n); len(got) != want || len(slices.Compact(slices.Clone(sorted))) != want || sorted[0] < 0 || sorted[want-1] >= c.count {
			t.Errorf("%d of %d cases: %v, want as many different numbers", c.n, c.count, got)
		}
		for i := range len(sorted) - 1 {
			if gap := sorted[i+1] - sorted[i]; float64(gap) > 3*float64(c.count)/float64(len(got))+1 {
				t.Errorf("%d of %d cases: none of %d between %d and %d", c.n, c.count, gap-1, sorted[i], sorted[i+1])
			}
		}
	}
}

// A sample is bounded by number and by bytes, and never empty.
func TestCrossCheckCount(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		size        int64
		count, want int
	}{{0, 3, 3}, {100, 100, 64}, {1 << 30, 64, 4}, {1 << 40, 3, 1}, {64 << 20, 1, 1}} {
		if got := SampleSize(c.size, c.count); got != c.want {
			t.Errorf("%d of %d cases of %d bytes, want %d", got, c.count, c.size, c.want)
		}
	}
}

// A case is in the shard whose numbers it is among; no shard has what comes after the last.
func TestShardOf(t *testing.T) {
	t.Parallel()
	shards := []artifact.Shard{{First: 0, Count: 3}, {First: 3, Count: 1}, {First: 4, Count: 2}}
	for number, want := range []int{0, 0, 0, 1, 2, 2, -1} {
		if got := ShardOf(shards, number); got != want {
			t.Errorf("case %d is in shard %d, want %d", number, got, want)
		}
	}
}
