package validators_test

import (
	"slices"
	"testing"

	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// goldenCompared is the check that no pass is without.
func goldenCompared() evidence.Checks {
	return evidence.Checks{{Trial: evidence.TrialGolden, Verdict: evidence.VerdictPass, Cases: 64}}
}

// A report that passes says that the golden outputs are those of the reference model, by a check whose verdict follows from its counts.
func TestRejudgeGolden(t *testing.T) {
	t.Parallel()
	limits := limits2(validators.OutputLimits{MaxAbs: &validators.AtMost{Max: 1}})
	got := limits.Judge("fp32", validators.Measured{Outputs: map[string]tensor.Result{"logits": equalResult(3)}, Cases: 3})
	golden := func(verdict evidence.Verdict, cases, affected int) evidence.Checks {
		return evidence.Checks{{Trial: evidence.TrialGolden, Verdict: verdict, Cases: cases, Affected: affected}}
	}
	converted := func(verdict evidence.Verdict, cases, affected, of int) evidence.Checks {
		checks := golden(verdict, cases, affected)
		checks[0].Converted = of
		return checks
	}
	for name, c := range map[string]struct {
		checks evidence.Checks
		want   evidence.Verdict
	}{
		"pass":                     {golden(evidence.VerdictPass, 64, 0), evidence.VerdictPass},
		"one of 64":                {golden(evidence.VerdictRecorded, 64, 1), evidence.VerdictPass},
		"none":                     {nil, evidence.VerdictUndecided},
		"another check":            {evidence.Checks{{Trial: evidence.TrialRepeat, Verdict: evidence.VerdictPass}}, evidence.VerdictUndecided},
		"undecided":                {golden(evidence.VerdictUndecided, 0, 0), evidence.VerdictUndecided},
		"of no case":               {golden(evidence.VerdictPass, 0, 0), evidence.VerdictUndecided},
		"two of 64":                {golden(evidence.VerdictRecorded, 64, 2), evidence.VerdictUndecided},
		"one of 63":                {golden(evidence.VerdictRecorded, 63, 1), evidence.VerdictUndecided},
		"pass with one":            {golden(evidence.VerdictPass, 64, 1), evidence.VerdictUndecided},
		"all converted":            {converted(evidence.VerdictPass, 64, 0, 64), evidence.VerdictPass},
		"more than all converted":  {converted(evidence.VerdictPass, 64, 0, 65), evidence.VerdictUndecided},
		"one beside one converted": {converted(evidence.VerdictRecorded, 64, 1, 1), evidence.VerdictUndecided},
		"recorded without any one": {golden(evidence.VerdictRecorded, 64, 0), evidence.VerdictUndecided},
	} {
		report := evidence.ParityReport{ReportHead: evidence.ReportHead{Verdict: evidence.VerdictPass},
			Cases: evidence.CasesRun{Count: 64, Ran: 64}, Rules: validators.LimitsVersion, Confidence: evidence.Figure(got.Confidence), Attempts: 1, Checks: slices.Concat(got.Checks, c.checks),
			Outputs: map[string]evidence.OutputFigures{"logits": {}}}
		again, err := validators.RejudgeWith(report, validators.Beside{Limits: &limits, Precision: "fp32"})
		if err != nil || again.Verdict != c.want {
			t.Errorf("%s: %s, %+v (%v); want %s", name, again.Verdict, again.Differences, err, c.want)
		}
	}
}
