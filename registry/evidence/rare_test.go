package evidence_test

import (
	"math"
	"testing"

	"mlpromote.dev/mlpromote/registry/evidence"
)

// So many runs, and not one less, miss a difference in one of so many requests half of the time.
func TestRunsFor(t *testing.T) {
	t.Parallel()
	for rare, want := range map[int]int{0: 0, 1: 0, 2: 1, 93: 64, 500: 346, evidence.MostRare: 69315} {
		got := evidence.RunsFor(rare)
		if got != want {
			t.Errorf("one of %d: %d runs, want %d", rare, got, want)
		}
		of := func(runs int) int {
			return evidence.Checks{{Trial: evidence.TrialRepeat, Cases: runs / 2}, {Trial: evidence.TrialProcess, Cases: runs - runs/2},
				{Trial: evidence.TrialBatch, Cases: 1000}}.MissedOneIn()
		}
		missed := math.Pow(1-1/float64(rare), float64(got))
		if rare > 1 && (of(got) < rare || of(got-1) >= rare || math.Abs(missed-0.5) > 0.01) {
			t.Errorf("%d runs show one of %d, and one run less one of %d; they miss one of %d in %.3f of the verifications", got, of(got), of(got-1), rare, missed)
		}
	}
	if got := (evidence.Checks{{Trial: evidence.TrialBatch, Cases: 8}}).MissedOneIn(); got != 0 {
		t.Errorf("without repeated runs: one of %d, want 0", got)
	}
}
