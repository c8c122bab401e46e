package verify

import (
	"testing"

	"mlpromote.dev/mlpromote/pipeline/run"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators"
)

// A failure that a check shows, or that its reason alone does, is one that a later pass contradicts. What chance decides, and a
// crash, is none.
func TestFailedExactly(t *testing.T) {
	t.Parallel()
	misses := registry.Figure(3)
	for name, c := range map[string]struct {
		report registry.ParityReport
		want   bool
	}{
		"a figure":     {registry.ParityReport{Checks: []registry.Check{{Output: "y", Figure: "maxAbs", Verdict: registry.VerdictFail}}}, true},
		"a rate":       {registry.ParityReport{Checks: []registry.Check{{Output: "y", Figure: "top1", Misses: &misses, Verdict: registry.VerdictFail}}}, false},
		"consistency":  {registry.ParityReport{Consistency: []registry.ConsistencyCheck{{Kind: registry.ConsistencyRepeat, Verdict: registry.VerdictFail}}}, true},
		"golden":       {registry.ParityReport{Consistency: []registry.ConsistencyCheck{{Kind: registry.ConsistencyGolden, Verdict: registry.VerdictFail}}}, true},
		"a crash":      {failedBy(reasonRun), false},
		"a plain load": {failedBy(validators.ReasonPlainLoad), true},
		"a shape":      {failedBy(reasonShape), true},
		"NaN":          {failedBy("new_nan"), true},
		"infinity":     {failedBy("new_inf"), true},
		"nothing":      {registry.ParityReport{}, false},
	} {
		if got := failedExactly(c.report); (got != "") != c.want {
			t.Errorf("%s: %q, want something: %v", name, got, c.want)
		}
	}
}

func failedBy(code string) registry.ParityReport {
	return registry.ParityReport{ReportHead: registry.ReportHead{Verdict: registry.VerdictFail, Reasons: []registry.Reason{{Code: code, Message: code}}}}
}

// A report counts as an attempt where it failed a limit that chance decides: on a rate, or on a mean that was drawn again and again.
func TestDrew(t *testing.T) {
	t.Parallel()
	one := registry.Figure(1)
	for name, c := range map[string]struct {
		check registry.Check
		drew  bool
	}{
		"a rate that fails":           {registry.Check{Misses: &one, Verdict: registry.VerdictFail}, true},
		"a mean that fails":           {registry.Check{Resampled: true, Verdict: registry.VerdictFail}, true},
		"a rate that passes":          {registry.Check{Misses: &one, Verdict: registry.VerdictPass}, false},
		"a rate that is not decided":  {registry.Check{Misses: &one, Verdict: registry.VerdictUndecided}, false},
		"an exact figure that fails":  {registry.Check{Verdict: registry.VerdictFail}, false},
		"an exact figure that passes": {registry.Check{Verdict: registry.VerdictPass}, false},
	} {
		if got := drew(registry.ParityReport{Checks: []registry.Check{c.check}}); got != c.drew {
			t.Errorf("%s: %t, want %t", name, got, c.drew)
		}
	}
}

// Samples of earlier reports are run again only where they can have been drawn from these cases.
func TestIsSample(t *testing.T) {
	t.Parallel()
	v := Session{Fetched: Fetched{Expected: Expected{Cases: run.Material{Set: &registry.CaseSet{Count: 100}}}}}
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
