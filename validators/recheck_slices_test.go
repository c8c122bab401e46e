package validators_test

import (
	"math"
	"slices"
	"testing"

	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/accuracy"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// slicedReport is a report on 600 cases in three slices, of which the engine has 540 right, and in
// slice 2 only half.
func slicedReport(t *testing.T) evidence.ParityReport {
	t.Helper()
	whole := evidence.Accuracy{Metric: "top1", Reference: 0.9, Engine: 0.9, Right: 540, Cases: 600, Count: 600}
	l := limits2(validators.OutputLimits{MaxAbs: &validators.AtMost{}})
	l.Accuracy = &validators.AccuracyLimit{Metric: "top1", Min: &validators.AtLeast{Min: 0.8},
		Slices: &validators.SliceLimit{By: "region", Min: &validators.AtLeast{Min: 0.7}, Drop: &validators.AtMost{Max: 0.1}}}
	part := func(value int64, right, cases int) accuracy.Slice {
		share := evidence.Figure(right) / evidence.Figure(cases)
		return accuracy.Slice{Value: value, Accuracy: evidence.Accuracy{Metric: "top1",
			Reference: share, Engine: share, Right: evidence.Figure(right), Cases: cases, Count: cases}}
	}
	j := l.Judge("fp32", validators.Measured{Outputs: map[string]tensor.Result{"logits": equalResult(600)}, Accuracy: &whole, Cases: 600,
		Slices: []accuracy.Slice{part(0, 240, 250), part(1, 250, 250), part(2, 50, 100)}})
	if j.Verdict != evidence.VerdictFail || len(j.Reasons) != 1 || len(j.Checks) != 8 {
		t.Fatalf("%s, %+v, %d checks; want 8 checks, of which that of slice 2 fails", j.Verdict, j.Reasons, len(j.Checks))
	}
	return evidence.ParityReport{ReportHead: evidence.ReportHead{Verdict: j.Verdict, Reasons: j.Reasons},
		Cases: evidence.CasesRun{Count: 600, Ran: 600}, Outputs: map[string]evidence.OutputFigures{"logits": {}},
		Accuracy: &whole, Rules: l.V, Confidence: evidence.Figure(j.Confidence), Attempts: 1, Checks: slices.Concat(j.Checks, goldenCompared()), Slices: j.Slices}
}

// A report cannot pass by leaving out a slice that fails, or its checks.
func TestRejudgeSlices(t *testing.T) {
	t.Parallel()
	without := func(r *evidence.ParityReport, drop func(c evidence.Check) bool) {
		r.Checks = slices.DeleteFunc(r.Checks, drop)
	}
	ofSlice2 := func(c evidence.Check) bool { return c.Slice == "2" }
	for name, c := range map[string]struct {
		change func(r *evidence.ParityReport)
		what   string
	}{
		"no check of a slice": {func(r *evidence.ParityReport) { without(r, ofSlice2) }, "accuracy of slice 2"},
		"a check of a slice less": {func(r *evidence.ParityReport) {
			without(r, func(c evidence.Check) bool { return ofSlice2(c) && c.Figure == "accuracy" })
		}, "accuracy of slice 2"},
		"no such slice":         {func(r *evidence.ParityReport) { without(r, ofSlice2); r.Slices = r.Slices[:2] }, "cases of slices"},
		"another slice instead": {func(r *evidence.ParityReport) { without(r, ofSlice2); r.Slices[2].Value = "1" }, "slice 1"},
		"a lower limit of a slice": {func(r *evidence.ParityReport) {
			at := slices.IndexFunc(r.Checks, func(c evidence.Check) bool { return ofSlice2(c) && c.Figure == "accuracy" })
			r.Checks[at].Limit, r.Checks[at].Verdict = new(evidence.Figure(0.3)), evidence.VerdictPass
		}, "accuracy of slice 2: limit"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			report := slicedReport(t)
			if got, err := validators.Rejudge(report); err != nil || len(got.Differences) > 0 || got.Verdict != evidence.VerdictFail {
				t.Fatalf("as it is: %+v, error %v; want that it fails, and no difference", got, err)
			}
			c.change(&report)
			report.Verdict, report.Reasons = evidence.VerdictPass, nil
			got, err := validators.Rejudge(report)
			if err != nil || got.Verdict == evidence.VerdictPass ||
				!slices.ContainsFunc(got.Differences, func(d validators.Difference) bool { return d.What == c.what }) {
				t.Errorf("%+v, error %v; want no pass, and a difference in %q", got, err, c.what)
			}
		})
	}
}

// Bounds of a bootstrap are believed only if the value is between them.
func TestRejudgeBoundsAroundTheValue(t *testing.T) {
	t.Parallel()
	for _, limit := range []validators.AccuracyLimit{
		{Metric: "mae", Max: &validators.AtMost{Max: 0.1}},
		{Metric: "mae", Drop: &validators.AtMost{Max: 0.01}},
		{Metric: "rmse", Relative: &validators.AtLeast{Min: 0.99}},
	} {
		_, report := judgedFigures(limit, values(t, limit.Metric, 100))
		c := &report.Checks[len(report.Checks.OfCases())-1]
		if !c.Resampled || c.Verdict != evidence.VerdictFail {
			t.Fatalf("%s of %s: %+v, want a fail by a bootstrap", c.Figure, limit.Metric, c)
		}
		low, high := c.Limit, c.Limit
		c.Low, c.High, c.Verdict = low, high, evidence.VerdictPass
		report.Verdict, report.Reasons = evidence.VerdictPass, nil
		got, err := validators.Rejudge(report)
		if err != nil || got.Verdict != evidence.VerdictUndecided || len(got.Differences) == 0 {
			t.Errorf("%s of %s, whose bounds %v and %v are beside %v: %+v, error %v; want undecided", c.Figure, limit.Metric, low, high, c.Value, got, err)
		}
	}
}

// A ratio to a reference of nothing has no value, and a report that is judged again says the same.
func TestRejudgeRatioToNothing(t *testing.T) {
	t.Parallel()
	f := values(t, "mae", 100)
	for i := range f.Reference.Each {
		f.Reference.Each[i] = 0
	}
	f.Reference.Least, f.Reference.Most = 0, 0
	j, report := judgedFigures(validators.AccuracyLimit{Metric: "mae", Drop: &validators.AtMost{Max: 0.1}}, f)
	got, err := validators.Rejudge(report)
	if err != nil || j.Verdict != evidence.VerdictUndecided || got.Verdict != j.Verdict ||
		len(got.Differences) > 0 || !math.IsNaN(float64(report.Checks[len(report.Checks.OfCases())-1].Value)) {
		t.Errorf("%s: %+v, error %v; want undecided without a difference", j.Verdict, got, err)
	}
}
