package verify

import (
	"errors"
	"testing"
	"time"

	"mlpromote.dev/mlpromote/pipeline/consistency"
	"mlpromote.dev/mlpromote/pipeline/run"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
)

// Extra runs get time for what the engine takes to load; the reference model's time is not known, and taken as the slowest engine's.
func TestTimeOfExtraRuns(t *testing.T) {
	t.Parallel()
	outputs := RunOutputs{Engines: []toolchain.EngineResult{{ID: "e0", LoadNS: int64(time.Second)}, {ID: "e1", LoadNS: int64(3 * time.Second)}, {ID: "e2", LoadNS: int64(2 * time.Second)}}}
	for _, c := range []struct {
		id    string
		fixed time.Duration
		load  time.Duration
	}{{"e0", 0, time.Second}, {"e1", 0, 3 * time.Second}, {run.ReferenceID, 0, 3 * time.Second}, {"e9", 0, 0}, {"e2", time.Minute, 2 * time.Second}} {
		v := Session{Env: &run.Env{ExtraTime: c.fixed}}
		total := extraTime
		if c.fixed != 0 {
			total = c.fixed
		}
		got := newExtra(v, c.id, outputs, 2)
		if want := total + extraLoads*c.load; got.load != c.load || got.total != want || got.left != want || got.parts != 2 {
			t.Errorf("%s: %v to load, %v in all, %v left; want %v and %v", c.id, got.load, got.total, got.left, c.load, want)
		}
		got.left = 0
		if err := got.do(t.Context(), &run.EngineRun{}, ""); !errors.Is(err, consistency.ErrNoTime) || !got.late {
			t.Errorf("%s: without time: error %v, late: %t, want %v", c.id, err, got.late, consistency.ErrNoTime)
		}
	}
}
