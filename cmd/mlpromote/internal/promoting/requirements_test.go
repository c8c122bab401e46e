package promoting

import (
	"fmt"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/cmd/internal/ui"
	"mlpromote.dev/mlpromote/registry/policy"
)

// A decision about seven engines fits on a screen: unmet requirements come first, each detail once, and those that are met are counted.
func TestRequirementsFitAScreen(t *testing.T) {
	t.Parallel()
	var d policy.Decision
	for n := range 7 {
		label := fmt.Sprintf("linux-amd64-v%d-openvino/int8", n)
		d.Requirements = append(d.Requirements, policy.Requirement{Name: policy.RequireSignature, Subject: label, Met: true, Detail: "signed by a builder"})
		failed := policy.Requirement{Name: policy.RequireParity, Subject: label, Refused: true,
			Detail: fmt.Sprintf(`the parity verdict is "fail": output logits: the signal to noise ratio in dB is -1.%d4606, below the limit of 12`, n)}
		reports := failed
		reports.Name = "reports"
		approved := policy.Requirement{Name: policy.RequireRecordedCases, Subject: label, Detail: "its cases are generated"}
		d.Requirements = append(d.Requirements, failed, reports, approved)
	}
	text := ui.Bare(requirementsText(d, false))
	if lines := strings.Count(text, "\n"); lines > 24 {
		t.Errorf("%d lines, want at most 24:\n%s", lines, text)
	}
	for line := range strings.Lines(text) {
		if len([]rune(line)) > ui.Width+1 {
			t.Errorf("%d columns: %s", len([]rune(line)), line)
		}
	}
	for _, want := range []string{
		"✗  REFUSED  parity, reports of linux-amd64-v0-openvino/int8: the parity verdict", "✗  UNMET    recorded-cases of all 7 engines: its cases are generated\n",
		"\n✓  7 of 28 requirements met: signature 7\n",
	} {
		if strings.Count(text, want) != 1 {
			t.Errorf("%q is %d times in\n%s", want, strings.Count(text, want), text)
		}
	}
	if all := ui.Bare(requirementsText(d, true)); strings.Count(all, "✓  met      signature of ") != 7 {
		t.Errorf("all of them:\n%s", all)
	}
	if text := requirementsText(policy.Decision{}, false); text != "" {
		t.Errorf("a decision without requirements is %q", text)
	}
}
