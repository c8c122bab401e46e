package proving

import (
	"math"
	"testing"

	"mlpromote.dev/mlpromote/registry"
)

// What a consistency check found is a line: what differs, or that nothing does.
func TestConsistencyText(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		check registry.ConsistencyCheck
		want  string
	}{
		"no difference": {registry.ConsistencyCheck{Kind: registry.ConsistencyRepeat, Cases: 32, Verdict: registry.VerdictPass}, "consistency repeat: pass, 32 cases, no difference"},
		"jitter": {registry.ConsistencyCheck{Kind: registry.ConsistencyProcess, Cases: 32, Affected: 3, MaxAbs: 0.5, Verdict: registry.VerdictRecorded},
			"consistency process: recorded, 3 of 32 cases differ, by at most 0.5"},
		"a difference within the limits": {registry.ConsistencyCheck{Kind: registry.ConsistencyBatch, What: "batch=8", Cases: 8, MaxAbs: 0.25, Verdict: registry.VerdictPass},
			"consistency batch batch=8: pass, 8 cases, largest difference 0.25"},
		"beyond the limits": {registry.ConsistencyCheck{Kind: registry.ConsistencyDimension, What: "seq=64", Cases: 8, MaxAbs: 7, Message: "top1 is 0", Verdict: registry.VerdictFail},
			"consistency dimension seq=64: fail, 8 cases, largest difference 7"},
		"left out": {registry.ConsistencyCheck{Kind: registry.ConsistencyDimension, What: "seq=64\n", Message: "no time", Verdict: registry.VerdictUndecided},
			"consistency dimension seq=64: undecided, no time"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := consistencyText(c.check); got != c.want {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
}

// What measuring took and what the machine did meanwhile are lines below the latencies; older reports do
// not have them.
func TestFillValuesInAReport(t *testing.T) {
	t.Parallel()
	p := &registry.ParityReport{Outputs: map[string]registry.OutputFigures{"depth": {Fill: 9999}, "mask": {}}}
	if got, want := errorsText(p), "  depth, fill values are left out: magnitudes of 9999 and above\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestFitnessText(t *testing.T) {
	t.Parallel()
	steal := registry.Figure(0.071)
	for want, report := range map[string]registry.PerformanceReport{
		"": {},
		"  256 runs in a budget of 1.0 s; measuring the latency of all engines took 2.5 s\n": {Latency: registry.Latency{Samples: 256}, BudgetNs: 1e9, TookNs: 25e8},
		"  machine: other virtual machines had 7.1 % of the time that processors wanted; processors went from 3000 to 2000 MHz; it is emulated\n": {
			Fitness: &registry.Fitness{Steal: &steal, MHzBefore: 3000, MHzAfter: 2000, Emulated: "it is emulated"}},
	} {
		if got := costText(&report) + fitnessText(report.Fitness); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// The brief line of an engine is its limit with the smallest margin, or what failed first.
func TestBrief(t *testing.T) {
	t.Parallel()
	f := func(v float64) *registry.Figure { figure := registry.Figure(v); return &figure }
	checks := []registry.Check{
		{Output: "y", Figure: "maxError", Value: 0.25, Limit: 1},
		{Output: "y", Figure: "top1", Value: 1, Low: f(0.9917), High: f(1), Limit: 0.99, AtLeast: true},
	}
	pass := registry.ParityReport{ReportHead: registry.ReportHead{Verdict: registry.VerdictPass}, Checks: checks, Rules: registry.ReportRules}
	failed := pass
	failed.Verdict, failed.Reasons = registry.VerdictFail, []registry.Reason{{Message: "y has 3 NaN"}, {Message: "more"}}
	for want, report := range map[string]registry.ParityReport{
		"smallest margin 17 %: output y, same best class 100 % (99.17 % to 100 %), at least 99 %": pass,
		"y has 3 NaN":           failed,
		"":                      {ReportHead: registry.ReportHead{Verdict: registry.VerdictPass}},
		"the verdict is failed": {ReportHead: registry.ReportHead{Verdict: "failed"}},
	} {
		if got := brief(report); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// The table of engines has the share of equal classes that is judged, and without a limit that of all rows.
func TestSameClassIsThatOfTheLimit(t *testing.T) {
	t.Parallel()
	rows := registry.Figure(0.9544)
	p := registry.ParityReport{Outputs: map[string]registry.OutputFigures{"logits": {Top1: &rows, CosineMin: 0.5}, "other": {CosineMin: 0.9}}}
	top1 := func() string { return figures(&p, nil)[4] }
	if got := top1(); got != "95.44 %" {
		t.Errorf("without a limit: %s, want that of all rows", got)
	}
	p.Checks = []registry.Check{{Output: "logits", Figure: "snrDb", Value: 12}, {Output: "other", Figure: "top1", Value: 0.5},
		{Output: "logits", Figure: "top1", Slice: "3", Value: 0.7}, {Output: "logits", Figure: "top1", Value: 0.9546}}
	if got := top1(); got != "95.46 %" {
		t.Errorf("with a limit: %s, want what it judges", got)
	}
	p.Checks = []registry.Check{{Output: "logits", Figure: "top1", Value: registry.Figure(math.NaN())}}
	if got := top1(); got != "95.44 %" {
		t.Errorf("with a limit that has no value: %s, want that of all rows", got)
	}
}
