package validators_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// An engine that always gives the most frequent answer does not pass, however seldom others are. One that misses half of what
// that one does passes.
func TestJudgeSkill(t *testing.T) {
	t.Parallel()
	limits := limits2(validators.OutputLimits{Equal: &validators.AtLeast{Min: 0.5}})
	for name, c := range map[string]struct {
		misses, others float64 // of 400 cases
		want           evidence.Verdict
		says           string
	}{
		"as a constant":            {9, 9, evidence.VerdictFail, "2.25 % of the answers are wrong, and an engine that always gave the most frequent one would miss 2.25 %"},
		"worse than a constant":    {20, 9, evidence.VerdictFail, "5 % of the answers are wrong"},
		"half of it":               {4.5, 9, evidence.VerdictPass, ""},
		"more than half":           {4.6, 9, evidence.VerdictFail, "want at most half"},
		"none of few":              {0, 1, evidence.VerdictPass, ""},
		"one of few":               {1, 1, evidence.VerdictFail, "1 of 400 cases have other answers, too few to tell"},
		"more than half of five":   {2.6, 5, evidence.VerdictFail, "want at most half"},
		"more than half of fewer":  {2.6, 4, evidence.VerdictFail, "too few to tell"},
		"all answers are the same": {3, 0, evidence.VerdictPass, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			result := tensor.Result{Cases: 400, FullCases: 400, Elements: 400, EqualMisses: c.misses, OtherAnswers: c.others, OtherCases: int(math.Ceil(c.others))}
			measured := validators.Measured{Outputs: map[string]tensor.Result{"logits": result}, Cases: 400}
			got := limits.Judge("fp32", measured)
			if got.Verdict != c.want || c.says != "" && (len(got.Reasons) != 1 || !strings.Contains(got.Reasons[0].Message, c.says)) {
				t.Fatalf("verdict %s, reasons %+v; want %s with %q", got.Verdict, got.Reasons, c.want, c.says)
			}
			if some := limits.JudgeSome("fp32", measured); some.Verdict != evidence.VerdictPass {
				t.Errorf("of some of the cases: %s, %+v; want a pass", some.Verdict, some.Reasons)
			}
			skill := evidence.Figure(result.Skill())
			report := evidence.ParityReport{ReportHead: evidence.ReportHead{Verdict: got.Verdict, Reasons: got.Reasons},
				Cases: evidence.CasesRun{Count: 400, Ran: 400}, Rules: validators.LimitsVersion, Confidence: evidence.Figure(got.Confidence), Attempts: 1, Checks: slices.Concat(got.Checks, goldenCompared()),
				Outputs: map[string]evidence.OutputFigures{"logits": {Skill: &skill}}}
			again, err := validators.RejudgeWith(report, validators.Beside{Limits: &limits, Precision: "fp32"})
			if err != nil || len(again.Differences) > 0 || again.Verdict != c.want {
				t.Errorf("judged again: %s, %+v (%v); want %s", again.Verdict, again.Differences, err, c.want)
			}
			if c.others == 0 {
				return
			}
			for i, check := range report.Checks {
				if check.Figure == "skill" {
					report.Checks[i].Value, report.Checks[i].Verdict = 1, evidence.VerdictPass
				}
			}
			if again, err := validators.RejudgeWith(report, validators.Beside{}); c.misses > 0 && (err != nil || len(again.Differences) == 0) {
				t.Errorf("a skill that does not follow from its counts: %+v (%v)", again, err)
			}
		})
	}
}

// Cases that say nothing of an output are no cases that the limits ask for.
func TestFewerCasesThatCount(t *testing.T) {
	t.Parallel()
	limits := limits2(validators.OutputLimits{MaxAbs: &validators.AtMost{Max: 1}})
	limits.MinCases = 300
	for full, want := range map[int]evidence.Verdict{300: evidence.VerdictPass, 299: evidence.VerdictUndecided} {
		result := tensor.Result{Cases: 400, FullCases: full, Elements: 400, SpreadSNR: math.Inf(1)}
		got := limits.Judge("fp32", validators.Measured{Outputs: map[string]tensor.Result{"logits": result}, Cases: 400})
		if got.Verdict != want || want != evidence.VerdictPass && got.Reasons[0].Code != validators.ReasonTooFewCases {
			t.Errorf("%d cases that count: %s, %+v; want %s", full, got.Verdict, got.Reasons, want)
		}
		report := evidence.ParityReport{ReportHead: evidence.ReportHead{Verdict: evidence.VerdictPass},
			Cases: evidence.CasesRun{Count: 400, Ran: 400}, Rules: validators.LimitsVersion, Confidence: evidence.Figure(got.Confidence), Attempts: 1, Checks: slices.Concat(got.Checks, goldenCompared()),
			Outputs: map[string]evidence.OutputFigures{"logits": {}}}
		again, err := validators.RejudgeWith(report, validators.Beside{Limits: &limits, Precision: "fp32"})
		if err != nil || again.Verdict != want {
			t.Errorf("%d cases that count, judged again: %s, %+v (%v); want %s", full, again.Verdict, again.Differences, err, want)
		}
		report.Verdict, report.Reasons = got.Verdict, got.Reasons
		again, err = validators.RejudgeWith(report, validators.Beside{Limits: &limits, Precision: "fp32"})
		if err != nil || again.Verdict != want || len(again.Differences) > 0 {
			t.Errorf("%d cases that count, which the report says: %s, %+v (%v); want %s without a difference", full, again.Verdict, again.Differences, err, want)
		}
	}
}

// A report that says itself that there were too few cases, or why none ran, differs from no limit; one that passes does, and so
// does one with other reasons.
func TestRejudgeTooFewCases(t *testing.T) {
	t.Parallel()
	limits := limits2(validators.OutputLimits{MaxAbs: &validators.AtMost{Max: 1}})
	limits.MinCases = 300
	for name, c := range map[string]struct {
		ran     int
		verdict evidence.Verdict
		code    string // of a reason
		want    evidence.Verdict
		differs bool
	}{
		"enough":                     {300, evidence.VerdictPass, "", evidence.VerdictPass, false},
		"too few":                    {299, evidence.VerdictUndecided, validators.ReasonTooFewCases, evidence.VerdictUndecided, false},
		"none ran":                   {0, evidence.VerdictFail, "run_failed", evidence.VerdictFail, false},
		"too few that pass":          {299, evidence.VerdictPass, "", evidence.VerdictUndecided, true},
		"too few, which is a reason": {299, evidence.VerdictPass, validators.ReasonTooFewCases, evidence.VerdictUndecided, true},
		"too few for another reason": {299, evidence.VerdictUndecided, validators.ReasonNotEnough, evidence.VerdictUndecided, true},
	} {
		result := tensor.Result{Cases: c.ran, FullCases: c.ran, Elements: int64(c.ran), SpreadSNR: math.Inf(1)}
		report := evidence.ParityReport{ReportHead: evidence.ReportHead{Verdict: c.verdict}, Rules: validators.LimitsVersion, Confidence: 0.95, Attempts: 1,
			Cases: evidence.CasesRun{Count: c.ran, Ran: c.ran}, Outputs: map[string]evidence.OutputFigures{"logits": {}}}
		if c.ran > 0 {
			report.Checks = limits.Judge("fp32", validators.Measured{Outputs: map[string]tensor.Result{"logits": result}, Cases: c.ran}).Checks
		}
		report.Checks = append(report.Checks, goldenCompared()...)
		if c.code != "" {
			report.Reasons = []evidence.Reason{{Code: c.code}}
		}
		got, err := validators.RejudgeWith(report, validators.Beside{Limits: &limits, Precision: "fp32"})
		if err != nil || got.Verdict != c.want || (len(got.Differences) > 0) != c.differs {
			t.Errorf("%s: %s, %+v (%v); want %s", name, got.Verdict, got.Differences, err, c.want)
		}
	}
}

// A report without the consistency checks that the limits want does not follow from them.
func TestRejudgeWithoutConsistencyChecks(t *testing.T) {
	t.Parallel()
	limits := limits2(validators.OutputLimits{MaxAbs: &validators.AtMost{Max: 1}})
	limits.Consistency = &validators.ConsistencyLimits{Jitter: validators.JitterNone}
	got := limits.Judge("fp32", validators.Measured{Outputs: map[string]tensor.Result{"logits": equalResult(3)}, Cases: 3})
	report := evidence.ParityReport{ReportHead: evidence.ReportHead{Verdict: evidence.VerdictPass},
		Cases: evidence.CasesRun{Count: 3, Ran: 3}, Rules: validators.LimitsVersion, Confidence: evidence.Figure(got.Confidence), Attempts: 1, Checks: slices.Concat(got.Checks, goldenCompared()),
		Outputs: map[string]evidence.OutputFigures{"logits": {}}}
	for name, c := range map[string]struct {
		checks evidence.Checks
		want   evidence.Verdict
	}{
		"none": {nil, evidence.VerdictUndecided},
		"both": {evidence.Checks{{Trial: evidence.TrialRepeat, Verdict: evidence.VerdictPass}, {Trial: evidence.TrialProcess, Verdict: evidence.VerdictPass}}, evidence.VerdictPass},
		"one that did not run": {evidence.Checks{{Trial: evidence.TrialRepeat, Verdict: evidence.VerdictPass},
			{Trial: evidence.TrialProcess, Verdict: evidence.VerdictUndecided}}, evidence.VerdictUndecided},
	} {
		report.Checks = slices.Concat(got.Checks, goldenCompared(), c.checks)
		again, err := validators.RejudgeWith(report, validators.Beside{Limits: &limits, Precision: "fp32"})
		if err != nil || again.Verdict != c.want || (len(again.Differences) > 0) != (c.want != evidence.VerdictPass) {
			t.Errorf("%s: %s, %+v (%v); want %s", name, again.Verdict, again.Differences, err, c.want)
		}
	}
}
