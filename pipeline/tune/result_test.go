package tune

import (
	"math"
	"testing"

	"mlpromote.dev/mlpromote/registry/evidence"
)

// A million predictions cost what the machine costs while it makes them.
func TestCostPerMillion(t *testing.T) {
	t.Parallel()
	trial := Trial{Latency: &evidence.Latency{PerSecond: 1000}}
	if got := trial.CostPerMillion(3.6); math.Abs(got-1) > 1e-12 {
		t.Errorf("at 3.6 an hour and 1000 a second: got %v, want 1", got)
	}
}
