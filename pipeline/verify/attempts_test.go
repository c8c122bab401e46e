package verify

import (
	"testing"

	"mlpromote.dev/mlpromote/pipeline/run"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/validators"
)

// A failure that a check shows, or that its reason alone does, is one that a later pass contradicts. What chance decides, and a
// crash, is none.
func TestFailedExactly(t *testing.T) {
	t.Parallel()
	misses := evidence.Figure(3)
	for name, c := range map[string]struct {
		report evidence.ParityReport
		want   bool
	}{
		"a figure":     {evidence.ParityReport{Checks: evidence.Checks{{Trial: evidence.TrialCases, Output: "y", Figure: "maxAbs", Verdict: evidence.VerdictFail}}}, true},
		"a rate":       {evidence.ParityReport{Checks: evidence.Checks{{Trial: evidence.TrialCases, Output: "y", Figure: "top1", Misses: &misses, Verdict: evidence.VerdictFail}}}, false},
		"consistency":  {evidence.ParityReport{Checks: evidence.Checks{{Trial: evidence.TrialRepeat, Verdict: evidence.VerdictFail}}}, true},
		"golden":       {evidence.ParityReport{Checks: evidence.Checks{{Trial: evidence.TrialGolden, Verdict: evidence.VerdictFail}}}, true},
		"a crash":      {failedBy(reasonRun), false},
		"a plain load": {failedBy(validators.ReasonPlainLoad), true},
		"a shape":      {failedBy(validators.ReasonShape), true},
		"NaN":          {failedBy("new_nan"), true},
		"infinity":     {failedBy("new_inf"), true},
		"nothing":      {evidence.ParityReport{}, false},
	} {
		if got := failedExactly(c.report); (got != "") != c.want {
			t.Errorf("%s: %q, want something: %v", name, got, c.want)
		}
	}
}

func failedBy(code string) evidence.ParityReport {
	return evidence.ParityReport{ReportHead: evidence.ReportHead{Verdict: evidence.VerdictFail, Reasons: []evidence.Reason{{Code: code, Message: code}}}}
}

// A report counts as an attempt where it failed a limit that chance decides: on a rate, or on a mean that was drawn again and again.
func TestDrew(t *testing.T) {
	t.Parallel()
	one := evidence.Figure(1)
	for name, c := range map[string]struct {
		check evidence.Check
		drew  bool
	}{
		"a rate that fails":           {evidence.Check{Trial: evidence.TrialCases, Misses: &one, Verdict: evidence.VerdictFail}, true},
		"a mean that fails":           {evidence.Check{Trial: evidence.TrialCases, Resampled: true, Verdict: evidence.VerdictFail}, true},
		"a rate that passes":          {evidence.Check{Trial: evidence.TrialCases, Misses: &one, Verdict: evidence.VerdictPass}, false},
		"a rate that is not decided":  {evidence.Check{Trial: evidence.TrialCases, Misses: &one, Verdict: evidence.VerdictUndecided}, false},
		"an exact figure that fails":  {evidence.Check{Trial: evidence.TrialCases, Verdict: evidence.VerdictFail}, false},
		"an exact figure that passes": {evidence.Check{Trial: evidence.TrialCases, Verdict: evidence.VerdictPass}, false},
	} {
		if got := drew(evidence.ParityReport{Checks: evidence.Checks{c.check}}); got != c.drew {
			t.Errorf("%s: %t, want %t", name, got, c.drew)
		}
	}
}

// Samples of earlier reports are run again only where they can have been drawn from these cases.
func TestIsSample(t *testing.T) {
	t.Parallel()
	v := Session{Fetched: Fetched{Expected: Expected{Cases: run.Material{Set: &artifact.CaseSet{Count: 100}}}}}
	many := make([]int, plainCases+1)
	for i := range many {
		many[i] = i
	}
	for name, c := range map[string]struct {
		numbers []int
		want    bool
	}{
		"some": {[]int{0, 7, 99}, true}, "one": {[]int{5}, true}, "as many as are drawn": {many[:plainCases], true},
		"none": {nil, false}, "too many": {many, false}, "one twice": {[]int{3, 3}, false}, "another order": {[]int{7, 3}, false},
		"below 0": {[]int{-1, 3}, false}, "beyond the last": {[]int{3, 100}, false},
	} {
		if got := isSample(v, c.numbers); got != c.want {
			t.Errorf("%s: got %t, want %t", name, got, c.want)
		}
	}
}
