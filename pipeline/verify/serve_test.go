package verify

import (
	"testing"
	"time"

	"mlpromote.dev/mlpromote/pipeline/consistency"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
)

// A server that answers slowly gets fewer rounds, at least one, and the time for it.
func TestPlanLoad(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answer time.Duration
		count  int
		rounds int
	}{
		"fast":                {time.Millisecond, 100, 11},
		"few cases":           {time.Microsecond, 2, loadRounds},
		"25 ms":               {25 * time.Millisecond, 100, 2},
		"slow":                {200 * time.Millisecond, 1000, 1},
		"nothing known of it": {0, 100, 11},
	} {
		results := []toolchain.EngineResult{{ID: "other", TimingsNS: []int64{1}}, {ID: "a", TimingsNS: []int64{0, 2 * c.answer.Nanoseconds()}}}
		left := &extra{total: extraTime, left: extraTime, parts: 1}
		rounds := planLoad(results, "a", c.count, left)
		if need := time.Duration(loadTimes*rounds*c.count) * c.answer; rounds != c.rounds || left.left < 2*need {
			t.Errorf("%s: %d rounds in %v, want %d, which need %v", name, rounds, left.left, c.rounds, need)
		}
	}
}

// A machine that is too slow for the requests of several clients says nothing against an engine, and proves nothing.
func TestNotLoaded(t *testing.T) {
	t.Parallel()
	for want, err := range map[evidence.Verdict]error{
		evidence.VerdictUndecided: registry.Errorf(registry.CodeUnavailable, "%w, 60 s", consistency.ErrStopped),
		evidence.VerdictFail:      registry.Errorf(registry.CodeInternal, "the server answers: status 500"),
	} {
		if got, reasons := notLoaded(err).Verdict(); got != want || len(reasons) != 1 {
			t.Errorf("%v: %s %v, want %s", err, got, reasons, want)
		}
	}
}
