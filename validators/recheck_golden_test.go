package validators_test

import (
	"testing"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// goldenCompared is the check that no pass is without.
func goldenCompared() []registry.ConsistencyCheck {
	return []registry.ConsistencyCheck{{Kind: registry.ConsistencyGolden, Verdict: registry.VerdictPass, Cases: 64}}
}

// A report that passes says that the golden outputs are those of the reference model, by a check whose verdict follows from its counts.
func TestRejudgeGolden(t *testing.T) {
	t.Parallel()
	limits := limits2(validators.OutputLimits{MaxAbs: &validators.AtMost{Max: 1}})
	got := limits.Judge("fp32", validators.Measured{Outputs: map[string]tensor.Result{"logits": equalResult(3)}, Cases: 3})
	golden := func(verdict registry.Verdict, cases, affected int) []registry.ConsistencyCheck {
		return []registry.ConsistencyCheck{{Kind: registry.ConsistencyGolden, Verdict: verdict, Cases: cases, Affected: affected}}
	}
	converted := func(verdict registry.Verdict, cases, affected, of int) []registry.ConsistencyCheck {
		checks := golden(verdict, cases, affected)
		checks[0].Converted = of
		return checks
	}
	for name, c := range map[string]struct {
		checks []registry.ConsistencyCheck
		want   registry.Verdict
	}{
		"pass":                     {golden(registry.VerdictPass, 64, 0), registry.VerdictPass},
		"one of 64":                {golden(registry.VerdictRecorded, 64, 1), registry.VerdictPass},
		"none":                     {nil, registry.VerdictUndecided},
		"another check":            {[]registry.ConsistencyCheck{{Kind: registry.ConsistencyRepeat, Verdict: registry.VerdictPass}}, registry.VerdictUndecided},
		"undecided":                {golden(registry.VerdictUndecided, 0, 0), registry.VerdictUndecided},
		"of no case":               {golden(registry.VerdictPass, 0, 0), registry.VerdictUndecided},
		"two of 64":                {golden(registry.VerdictRecorded, 64, 2), registry.VerdictUndecided},
		"one of 63":                {golden(registry.VerdictRecorded, 63, 1), registry.VerdictUndecided},
		"pass with one":            {golden(registry.VerdictPass, 64, 1), registry.VerdictUndecided},
		"all converted":            {converted(registry.VerdictPass, 64, 0, 64), registry.VerdictPass},
		"more than all converted":  {converted(registry.VerdictPass, 64, 0, 65), registry.VerdictUndecided},
		"one beside one converted": {converted(registry.VerdictRecorded, 64, 1, 1), registry.VerdictUndecided},
		"recorded without any one": {golden(registry.VerdictRecorded, 64, 0), registry.VerdictUndecided},
	} {
		report := registry.ParityReport{ReportHead: registry.ReportHead{Verdict: registry.VerdictPass}, Consistency: c.checks,
			Cases: registry.CasesRun{Count: 64, Ran: 64}, Rules: validators.LimitsVersion, Confidence: registry.Figure(got.Confidence), Attempts: 1, Checks: got.Checks,
			Outputs: map[string]registry.OutputFigures{"logits": {}}}
		again, err := validators.RejudgeWith(report, validators.Beside{Limits: &limits, Precision: "fp32"})
		if err != nil || again.Verdict != c.want {
			t.Errorf("%s: %s, %+v (%v); want %s", name, again.Verdict, again.Differences, err, c.want)
		}
	}
}
