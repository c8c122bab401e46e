package drafting

import (
	"bytes"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/cmd/internal/ui"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/program"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/validators"
)

// An engine that fails a limit is named, and the exit code is 3.
func TestSuggestedLimitsNameWhoFails(t *testing.T) {
	t.Parallel()
	s := validators.NewSuggestion(500, 1000)
	s.Add("cpu/int8", "int8", evidence.ParityReport{Checks: evidence.Checks{
		{Trial: evidence.TrialCases, Output: "y", Figure: "snrDb", Value: 1, Limit: new(evidence.Figure(12)), AtLeast: true, Verdict: evidence.VerdictFail}}})
	var stdout, stderr bytes.Buffer
	a := &program.App{UI: ui.NewPlain("mlpromote", &stdout, &stderr)}
	err := printSuggested(a, *s)
	if got := registry.ExitCode(err); got != registry.ExitLimit {
		t.Errorf("exit code %d for %v, want %d", got, err, registry.ExitLimit)
	}
	const want = "warning: cpu/int8 is left out: output y: snrDb is 1, and the limit is at least 12"
	if !strings.Contains(stderr.String(), want) || strings.Contains(stdout.String(), "int8") {
		t.Errorf("stderr %q, stdout %q, want %q, and no limit of int8", stderr.String(), stdout.String(), want)
	}
	if err := printSuggested(a, *validators.NewSuggestion(500, 1000)); err != nil {
		t.Errorf("error %v where no engine is left out, want none", err)
	}
}
