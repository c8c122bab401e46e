package validators_test

import (
	"slices"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/figure"
	"mlpromote.dev/mlpromote/validators"
)

// Each line names its worst check, and what it was judged on or why it was not.
func TestLines(t *testing.T) {
	t.Parallel()
	limited := func(output, name string, value, limit float64, verdict evidence.Verdict) evidence.Check {
		row, _ := figure.Find(name)
		return evidence.Check{Trial: evidence.TrialCases, Output: output, Figure: name, Value: evidence.Figure(value), Limit: new(evidence.Figure(limit)),
			AtLeast: row.AtLeast, Cases: 300, Verdict: verdict}
	}
	tried := func(trial evidence.Trial, size string, cases, affected int, verdict evidence.Verdict) evidence.Check {
		return evidence.Check{Trial: trial, Size: size, Figure: figure.MaxAbs, Cases: cases, Affected: affected, Value: evidence.Figure(affected), Verdict: verdict}
	}
	const pass, fail, recorded, undecided = evidence.VerdictPass, evidence.VerdictFail, evidence.VerdictRecorded, evidence.VerdictUndecided
	report := evidence.ParityReport{Cases: evidence.CasesRun{Count: 300, Ran: 300, Labelled: true}, Checks: evidence.Checks{
		limited("y", figure.SNR, 40, 12, pass), limited("y", figure.CaseError, 0.7, 0.8, pass), limited("z", figure.MaxError, 1, 2.5, pass),
		limited("y", figure.Systematic, 0.05, 0.03, fail),
		tried(evidence.TrialGolden, "", 64, 0, pass), tried(evidence.TrialRepeat, "", 32, 0, pass), tried(evidence.TrialBatch, "batch=2", 8, 3, recorded),
		tried(evidence.TrialBatch, "batch=8", 8, 0, pass), tried(evidence.TrialDimension, "seq=64", 0, 0, undecided),
	}}
	report.Verdict, report.Reasons = fail, []evidence.Reason{{Code: validators.ReasonLimit, Figure: figure.Systematic, Message: "biased"}}
	want := []validators.Line{
		{Name: figure.EveryCase, Verdict: pass, Worst: "error of the worst case / spread of y 0.7, at most 0.8", Basis: "300 cases"},
		{Name: figure.Tendency, Verdict: fail, Worst: "bias / spread of y 0.05, at most 0.03", Basis: "300 cases"},
		{Name: figure.SameAnswers, Verdict: recorded, Basis: "no answers judged"},
		{Name: figure.Labels, Verdict: recorded, Basis: "labels not used: no limits.accuracy"},
		{Name: figure.Again, Verdict: pass, Worst: "batch batch=2: 3 of 8 cases differ, by at most 3", Basis: "repeat, batch (2 runs); would miss a difference in one of 47 requests half of the time; not run: dimension seq=64"},
		{Name: figure.Runs, Verdict: pass, Worst: "no difference", Basis: "golden"},
	}
	got := validators.Lines(report)
	for i := range got {
		if there := got[i].Check != nil; there != (got[i].Worst != "") || there && got[i].Check.Trial == evidence.TrialCases && !strings.Contains(got[i].Worst, validators.LimitText(*got[i].Check)) {
			t.Errorf("the worst check of %s is %+v", got[i].Name, got[i].Check)
		}
		got[i].Check = nil
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	byQuarter := report
	byQuarter.Checks, byQuarter.Reasons = evidence.Checks{limited("y", figure.QuarterError, 0.1, 0.5, pass)}, nil
	if got := validators.Lines(byQuarter)[1]; got.Verdict != recorded || got.Basis != "judged in every case: an offset or factor of a quarter of the values counts four times in its error" {
		t.Errorf("the bias of an output that is judged by quarters: %+v", got)
	}
	empty := validators.Lines(evidence.ParityReport{ReportHead: evidence.ReportHead{Verdict: fail, Reasons: []evidence.Reason{{Code: "run_failed", Message: "it crashed"}}}})
	for _, line := range empty {
		if runs := line.Name == figure.Runs; line.Basis != "no case ran" || (line.Verdict == fail) != runs || (line.Worst == "it crashed") != runs {
			t.Errorf("without a case: %+v", line)
		}
	}
	if len(empty) != len(figure.Lines()) {
		t.Errorf("%d lines, want %d", len(empty), len(figure.Lines()))
	}
}

// An engine has one reason for each line: the one that is furthest beyond its limit, and a failure before what is not known.
func TestOnePerLine(t *testing.T) {
	t.Parallel()
	limit := func(name string, value, limit float64, message string) evidence.Reason {
		return evidence.Reason{Code: validators.ReasonLimit, Output: "y", Figure: name, Value: evidence.Figure(value), Limit: evidence.Figure(limit), Message: message}
	}
	for name, c := range map[string]struct {
		found validators.Findings
		want  []string
	}{
		"none": {nil, nil},
		"the furthest": {validators.Failed(limit(figure.SNR, 11, 12, "noise"), limit(figure.CaseError, 8, 0.8, "case"), limit(figure.MaxError, 3, 2.5, "element")),
			[]string{"case"}},
		"other outputs": {append(validators.Failed(limit(figure.SNR, 11, 12, "noise")), validators.Failed(evidence.Reason{Code: validators.ReasonLimit, Output: "z", Figure: figure.SNR, Value: 5, Limit: 12, Message: "more noise"},
			evidence.Reason{Code: validators.ReasonLimit, Output: "z", Figure: figure.CaseError, Value: 1, Limit: 0.8, Message: "case"})...), []string{"more noise; 1 more output fails here, too"}},
		"NaN first": {validators.Failed(limit(figure.CaseError, 8, 0.8, "case"), evidence.Reason{Code: validators.ReasonNewNaN, Figure: "newNaN", Message: "NaN"}),
			[]string{"NaN"}},
		"sizes": {validators.Failed(evidence.Reason{Code: validators.ReasonDimension, Figure: figure.SNR, Message: "seq=1"},
			evidence.Reason{Code: validators.ReasonDimension, Figure: figure.Top1, Message: "seq=64"}, evidence.Reason{Code: validators.ReasonBatch, Message: "batch"}),
			[]string{"seq=1"}},
		"failures first": {append(validators.Undecided(evidence.Reason{Code: validators.ReasonNotEnough, Output: "y", Figure: figure.Top1, Message: "few"}),
			validators.Failed(limit(figure.Equal, 0.5, 0.9, "wrong"))...), []string{"wrong"}},
		"labels by a metric that is a figure, too": {append(validators.Failed(evidence.Reason{Code: validators.ReasonLimit, Output: "y", Figure: figure.Top1, Message: "answers"}),
			validators.Failed(evidence.Reason{Code: validators.ReasonAccuracy, Figure: "top1", Message: "labels"})...), []string{"labels"}},
		"lines in their order": {validators.Failed(limit(figure.Top1, 0.5, 0.9, "answers"), limit(figure.SNR, 11, 12, "noise"),
			evidence.Reason{Code: validators.ReasonAccuracy, Figure: "f1_macro", Message: "labels"}, evidence.Reason{Code: "provider", Message: "cpu"}),
			[]string{"noise", "labels", "cpu"}},
		"bias beside errors": {validators.Failed(limit(figure.Systematic, 0.5, 0.03, "bias"), limit(figure.CaseError, 8, 0.8, "case")), []string{"case"}},
		"bias alone":         {validators.Failed(limit(figure.Systematic, 0.5, 0.03, "bias")), []string{"bias"}},
	} {
		_, reasons := c.found.OnePerLine().Verdict()
		var got []string
		for _, r := range reasons {
			got = append(got, r.Message)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %s, want %s", name, strings.Join(got, " | "), strings.Join(c.want, " | "))
		}
		before, _ := c.found.Verdict()
		if after, _ := c.found.OnePerLine().Verdict(); after != before {
			t.Errorf("%s: %s with one reason for each line, and %s with all", name, after, before)
		}
	}
}
