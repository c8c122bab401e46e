package stats_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"mlpromote.dev/mlpromote/validators/stats"
)

// The largest of many errors exceeds that of few, times the factor, as often as it says: as seeded draws
// of exponential errors do. Sizes of normal errors exceed it more seldom.
func TestUpperLargest(t *testing.T) {
	t.Parallel()
	const tries = 4000
	for _, c := range []struct {
		few, many int
		level     float64
	}{{5, 300, 0.95}, {60, 300, 0.95}, {300, 300, 0.95}, {300, 60, 0.9}, {1, 20, 0.9}} {
		factor := stats.UpperLargest(c.few, c.many, c.level)
		r := rand.New(rand.NewPCG(uint64(c.few), uint64(c.many)))
		largest := func(n int, draw func() float64) (most float64) {
			for range n {
				most = max(most, draw())
			}
			return most
		}
		normal := func() float64 { return math.Abs(r.NormFloat64()) }
		var beyond, beyondNormal float64
		for range tries {
			if largest(c.many, r.ExpFloat64) > factor*largest(c.few, r.ExpFloat64) {
				beyond++
			}
			if largest(c.many, normal) > factor*largest(c.few, normal) {
				beyondNormal++
			}
		}
		want := 1 - c.level
		if off := math.Abs(beyond/tries - want); off > 4*math.Sqrt(want*c.level/tries) {
			t.Errorf("%d and %d cases, factor %.3f: exceeded in %.3f of draws, want %.3f", c.few, c.many, factor, beyond/tries, want)
		}
		if beyondNormal > beyond {
			t.Errorf("%d and %d cases: normal errors exceed it %v times, exponential ones %v times; want fewer", c.few, c.many, beyondNormal, beyond)
		}
	}
	for _, c := range []struct {
		few, many int
		level     float64
		want      float64
	}{{0, 300, 0.95, math.Inf(1)}, {300, -1, 0.95, math.Inf(1)}, {300, 0, 0.95, 1}, {300,
		300, 1, math.Inf(1)}, {300, 300, math.NaN(), math.Inf(1)}, {2000, 10, 0.95, 1}} {
		if got := stats.UpperLargest(c.few, c.many, c.level); got != c.want {
			t.Errorf("UpperLargest(%d, %d, %v) = %v, want %v", c.few, c.many, c.level, got, c.want)
		}
	}
	for few := 1; few < 1000; few *= 3 {
		t.Logf("%d cases for 300: %.3f at 95 %%", few, stats.UpperLargest(few, 300, 0.95))
	}
	t.Logf("60: %.3f 128 for 360: %.3f 500 for 1000: %.3f, 300 for 300 %.3f", stats.UpperLargest(60, 300, 0.95),
		stats.UpperLargest(128, 360, 0.95), stats.UpperLargest(500, 1000, 0.95), stats.UpperLargest(300, 300, .95))
}
