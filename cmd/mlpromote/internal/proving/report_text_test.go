package proving

import (
	"math"
	"testing"

	"mlpromote.dev/mlpromote/registry/evidence"
)

// What a consistency check found is a line: what differs, or that nothing does.
func TestConsistencyText(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		check evidence.Check
		want  string
	}{
		"no difference": {evidence.Check{Trial: evidence.TrialRepeat, Cases: 32, Verdict: evidence.VerdictPass}, "consistency repeat: pass, 32 cases, no difference"},
		"jitter": {evidence.Check{Trial: evidence.TrialProcess, Cases: 32, Affected: 3, Value: 0.5, Verdict: evidence.VerdictRecorded},
			"consistency process: recorded, 3 of 32 cases differ, by at most 0.5"},
		"a difference within the limits": {evidence.Check{Trial: evidence.TrialBatch, Size: "batch=8", Cases: 8, Value: 0.25, Verdict: evidence.VerdictPass},
			"consistency batch batch=8: pass, 8 cases, largest difference 0.25"},
		"beyond the limits": {evidence.Check{Trial: evidence.TrialDimension, Size: "seq=64", Cases: 8, Value: 7, Message: "top1 is 0", Verdict: evidence.VerdictFail},
			"consistency dimension seq=64: fail, 8 cases, largest difference 7"},
		"left out": {evidence.Check{Trial: evidence.TrialDimension, Size: "seq=64\n", Message: "no time", Verdict: evidence.VerdictUndecided},
			"consistency dimension seq=64: undecided, no time"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := trialText(c.check); got != c.want {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
}

// What measuring took and what the machine did meanwhile are lines below the latencies; older reports do
// not have them.
func TestFillValuesInAReport(t *testing.T) {
	t.Parallel()
	p := &evidence.ParityReport{Outputs: map[string]evidence.OutputFigures{"depth": {Fill: 9999}, "mask": {}}}
	if got, want := errorsText(p), "  depth, fill values are left out: magnitudes of 9999 and above\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestFitnessText(t *testing.T) {
	t.Parallel()
	steal := evidence.Figure(0.071)
	for want, report := range map[string]evidence.PerformanceReport{
		"": {},
		"  256 runs in a budget of 1.0 s; measuring the latency of all engines took 2.5 s\n": {Latency: evidence.Latency{Samples: 256}, BudgetNs: 1e9, TookNs: 25e8},
		"  machine: other virtual machines had 7.1 % of the time that processors wanted; processors went from 3000 to 2000 MHz; it is emulated\n": {
			Fitness: &evidence.Fitness{Steal: &steal, MHzBefore: 3000, MHzAfter: 2000, Emulated: "it is emulated"}},
	} {
		if got := costText(&report) + fitnessText(report.Fitness); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// The brief line of an engine is its limit with the smallest margin, or what failed first.
func TestBrief(t *testing.T) {
	t.Parallel()
	f := func(v float64) *evidence.Figure { figure := evidence.Figure(v); return &figure }
	checks := evidence.Checks{
		{Trial: evidence.TrialCases, Output: "y", Figure: "maxError", Value: 0.25, Limit: new(evidence.Figure(1))},
		{Trial: evidence.TrialCases, Output: "y", Figure: "top1", Value: 1, Low: f(0.9917), High: f(1), Limit: new(evidence.Figure(0.99)), AtLeast: true},
	}
	pass := evidence.ParityReport{ReportHead: evidence.ReportHead{Verdict: evidence.VerdictPass}, Checks: checks, Rules: evidence.ReportRules}
	failed := pass
	failed.Verdict, failed.Reasons = evidence.VerdictFail, []evidence.Reason{{Message: "y has 3 NaN"}, {Message: "more"}}
	for want, report := range map[string]evidence.ParityReport{
		"smallest margin 17 %: output y, same best class 100 % (99.17 % to 100 %), at least 99 %": pass,
		"y has 3 NaN":           failed,
		"":                      {ReportHead: evidence.ReportHead{Verdict: evidence.VerdictPass}},
		"the verdict is failed": {ReportHead: evidence.ReportHead{Verdict: "failed"}},
	} {
		if got := brief(report); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// The table of engines has the share of equal classes that is judged, and without a limit that of all rows.
func TestSameClassIsThatOfTheLimit(t *testing.T) {
	t.Parallel()
	rows := evidence.Figure(0.9544)
	p := evidence.ParityReport{Outputs: map[string]evidence.OutputFigures{"logits": {Top1: &rows, CosineMin: 0.5}, "other": {CosineMin: 0.9}}}
	top1 := func() string { return figures(&p, nil)[4] }
	if got := top1(); got != "95.44 %" {
		t.Errorf("without a limit: %s, want that of all rows", got)
	}
	p.Checks = evidence.Checks{{Trial: evidence.TrialCases, Output: "logits", Figure: "snrDb", Value: 12}, {Trial: evidence.TrialCases, Output: "other", Figure: "top1", Value: 0.5},
		{Trial: evidence.TrialCases, Output: "logits", Figure: "top1", Slice: "3", Value: 0.7}, {Trial: evidence.TrialCases, Output: "logits", Figure: "top1", Value: 0.9546}}
	if got := top1(); got != "95.46 %" {
		t.Errorf("with a limit: %s, want what it judges", got)
	}
	p.Checks = evidence.Checks{{Trial: evidence.TrialCases, Output: "logits", Figure: "top1", Value: evidence.Figure(math.NaN())}}
	if got := top1(); got != "95.44 %" {
		t.Errorf("with a limit that has no value: %s, want that of all rows", got)
	}
}
