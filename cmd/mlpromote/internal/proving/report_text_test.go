package proving

import (
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
