package validators_test

import (
	"testing"

	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/validators"
)

func TestFold(t *testing.T) {
	t.Parallel()
	reason := evidence.Reason{Code: "x", Message: "x"}
	for _, c := range []struct {
		found   validators.Findings
		want    evidence.Verdict
		reasons int
	}{
		{nil, evidence.VerdictPass, 0},
		{validators.Findings{{Verdict: evidence.VerdictRecorded}}, evidence.VerdictRecorded, 0},
		{validators.Undecided(reason), evidence.VerdictUndecided, 1},
		{append(validators.Failed(reason), validators.Undecided(reason)...), evidence.VerdictFail, 2},
		{validators.Findings{{}}, evidence.VerdictUndecided, 1},                     // nothing says that it passed
		{validators.Findings{{Verdict: "excellent"}}, evidence.VerdictUndecided, 1}, // of a version that is not known
		{append(validators.Failed(reason), validators.Finding{Verdict: "excellent"}), evidence.VerdictFail, 2},
	} {
		if verdict, reasons := c.found.Verdict(); verdict != c.want || len(reasons) != c.reasons {
			t.Errorf("%v: %q with %d reasons, want %q with %d", c.found, verdict, len(reasons), c.want, c.reasons)
		}
	}
}
