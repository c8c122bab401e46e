package pipeline

import (
	"fmt"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/registry"
)

// An error about an engine lists its first reasons, and says how many more there are.
func TestReasonsOfAnEngine(t *testing.T) {
	t.Parallel()
	for reasons, want := range map[int]int{1: 1, 8: 8, 9: 9, 10: 9, 40: 9} {
		var e VerifiedEngine
		e.Parity.Verdict = registry.VerdictFail
		for i := range reasons {
			e.Parity.Reasons = append(e.Parity.Reasons, registry.Reason{Message: fmt.Sprintf("reason %d", i)})
		}
		text := failed(e).Error()
		if got := strings.Count(text, "\n"); got != want || strings.Contains(text, fmt.Sprintf("and %d more reasons", reasons-8)) != (reasons > 9) {
			t.Errorf("%d reasons in %d lines, want %d:\n%s", reasons, got, want, text)
		}
	}
}
