package validators_test

import (
	"testing"

	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/validators"
)

// Every trial beyond the run of all cases has a row with a code and a baseline, and only runs that are compared with
// the engine itself may differ by noise alone.
func TestTrials(t *testing.T) {
	t.Parallel()
	seen := make(map[evidence.Trial]bool)
	for _, trial := range validators.Trials() {
		if trial.Code == "" || trial.Baseline == "" || seen[trial.Trial] || validators.TrialOf(trial.Trial) != trial {
			t.Errorf("%q: code %q, baseline %q, twice: %v", trial.Trial, trial.Code, trial.Baseline, seen[trial.Trial])
		}
		seen[trial.Trial] = true
		if trial.Again && (trial.Baseline != evidence.BaselineItself || trial.Noise == 0) || trial.InProcess && !trial.SameCases || trial.SameCases && !trial.Again {
			t.Errorf("%q differs by noise from %s: %+v", trial.Trial, trial.Baseline, trial)
		}
	}
	for _, trial := range evidence.Trials() {
		if !seen[trial] && trial != evidence.TrialCases {
			t.Errorf("no row has the rules of %s", trial)
		}
	}
	if unknown := validators.TrialOf("unknown"); unknown.Code != "" || unknown.Again {
		t.Errorf("an unknown kind is %+v", unknown)
	}
}
