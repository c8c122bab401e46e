package verify

import (
	"testing"
	"time"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
)

// A chunk takes half a minute, or twenty times what loading the model takes, and at least one case.
func TestNextChunk(t *testing.T) {
	t.Parallel()
	second := time.Second.Nanoseconds()
	for name, c := range map[string]struct {
		load    time.Duration
		timings []int64
		want    int
	}{
		"quick to load":            {0, []int64{second, second}, 30},
		"mean, not one case":       {0, []int64{second, 3 * second}, 15},
		"loading as long":          {1500 * time.Millisecond, []int64{second}, 30},
		"slow to load":             {3 * time.Second, []int64{second}, 60},
		"a case of minutes":        {0, []int64{120 * second}, 1},
		"a case just over a chunk": {0, []int64{30*second + 1}, 1},
		"too quick to measure":     {0, []int64{0}, int(30 * second)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := nextChunk(toolchain.EngineResult{LoadNS: c.load.Nanoseconds(), TimingsNS: c.timings})
			if got != c.want {
				t.Errorf("%d cases after %v and a load of %v, want %d", got, c.timings, c.load, c.want)
			}
		})
	}
}
