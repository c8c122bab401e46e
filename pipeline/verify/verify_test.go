package verify

import (
	"fmt"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
)

// A verdict that is no pass fails, whether or not a reason says why. That times were only recorded is enough; that parity was is not.
func TestNoPassFails(t *testing.T) {
	t.Parallel()
	const pass, recorded = evidence.VerdictPass, evidence.VerdictRecorded
	for _, c := range []struct {
		parity, performance evidence.Verdict
		pass                bool
	}{
		{pass, pass, true}, {pass, recorded, true}, {recorded, recorded, false}, {pass, "", false}, {"", pass, false},
		{evidence.VerdictFail, pass, false}, {pass, evidence.VerdictUndecided, false},
	} {
		var e VerifiedEngine
		e.Parity.Verdict, e.Performance.Verdict = c.parity, c.performance
		if err := failed(e); (err == nil) != c.pass || err != nil && !registry.HasCode(err, registry.CodeLimit) {
			t.Errorf("parity %q, performance %q: %v", c.parity, c.performance, err)
		}
	}
}

// An error about an engine lists its first reasons, and says how many more there are.
func TestReasonsOfAnEngine(t *testing.T) {
	t.Parallel()
	for reasons, want := range map[int]int{1: 1, 8: 8, 9: 9, 10: 9, 40: 9} {
		var e VerifiedEngine
		e.Parity.Verdict = evidence.VerdictFail
		for i := range reasons {
			e.Parity.Reasons = append(e.Parity.Reasons, evidence.Reason{Message: fmt.Sprintf("reason %d", i)})
		}
		text := failed(e).Error()
		if got := strings.Count(text, "\n"); got != want || strings.Contains(text, fmt.Sprintf("and %d more reasons", reasons-8)) != (reasons > 9) {
			t.Errorf("%d reasons in %d lines, want %d:\n%s", reasons, got, want, text)
		}
	}
}
