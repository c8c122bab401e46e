package performance_test

import (
	"math/rand/v2"
	"testing"

	"mlpromote.dev/mlpromote/validators/performance"
)

// The bounds hold the ratio that the samples were made with, and that of an engine with itself holds 1.
func TestRatio(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	blocks := func(n int, nanoseconds float64) [][]int64 {
		all := make([][]int64, n)
		for i := range all {
			for range 50 {
				all[i] = append(all[i], int64(nanoseconds*(1+0.1*random.Float64())))
			}
		}
		return all
	}
	engine := blocks(12, 1.3e6)
	r := performance.Ratio(performance.Blocks{Engine: engine, Current: blocks(12, 1e6), First: engine[:6], Second: engine[6:]}, 0.95)
	if !(r.Low <= 1.3 && 1.3 <= r.High && r.High-r.Low < 0.1) || r.Ratio < r.Low || r.Ratio > r.High {
		t.Errorf("ratio %v from %v to %v, want 1.3", r.Ratio, r.Low, r.High)
	}
	if !(r.SameLow <= 1 && 1 <= r.SameHigh && r.SameHigh-r.SameLow < 0.1) {
		t.Errorf("the engine against itself from %v to %v, want 1", r.SameLow, r.SameHigh)
	}
	if r.Blocks != 12 || r.CurrentNs < 1e6 || r.CurrentNs > 1.1e6 || r.Confidence != 0.95 {
		t.Errorf("%+v, want 12 blocks and 1 ms", r)
	}
	if few := performance.Ratio(performance.Blocks{Engine: engine[:2], Current: engine[2:4]}, 0.95); few.Low > 0 {
		t.Errorf("two blocks are bounded by %v, want no bound", few.Low)
	}
}
