package validators_test

import (
	"testing"

	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/validators"
)

// Every trial has a code and a baseline, every kind of consistency check is one, and only runs that are compared with
// the engine itself may differ by noise alone.
func TestTrials(t *testing.T) {
	t.Parallel()
	seen := make(map[evidence.ConsistencyKind]bool)
	for _, trial := range validators.Trials() {
		if trial.Code == "" || trial.Baseline == "" || seen[trial.Kind] || validators.TrialOf(trial.Kind) != trial {
			t.Errorf("%q: code %q, baseline %q, twice: %v", trial.Kind, trial.Code, trial.Baseline, seen[trial.Kind])
		}
		seen[trial.Kind] = true
		if trial.Again && (trial.Baseline != validators.BaselineItself || trial.Noise == 0) || trial.InProcess && !trial.SameCases || trial.SameCases && !trial.Again {
			t.Errorf("%q differs by noise from %s: %+v", trial.Kind, trial.Baseline, trial)
		}
	}
	for _, kind := range []evidence.ConsistencyKind{evidence.ConsistencyGolden, evidence.ConsistencyRepeat, evidence.ConsistencyProcess,
		evidence.ConsistencyLoad, evidence.ConsistencyBatch, evidence.ConsistencyDimension} {
		if !seen[kind] {
			t.Errorf("no trial is of kind %s", kind)
		}
	}
	if unknown := validators.TrialOf("unknown"); unknown.Code != "" || unknown.Again {
		t.Errorf("an unknown kind is %+v", unknown)
	}
}
