package build

import (
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/plan"
	"mlpromote.dev/mlpromote/registry"
)

// What is missing is listed with its runner, and each target is in the hint once.
func TestIncomplete(t *testing.T) {
	t.Parallel()
	w := wantedParts{common: plan.Plan{Model: "a/b", Version: "1.0.0"}, asked: make([]plan.Requested, 3)}
	err := incomplete(w, AssembleResult{
		Missing: []MissingEngine{{"x/fp32", "x", "gpu"}, {"x/int8", "x", "gpu"}, {"y/fp32", "y", ""}},
		Aside:   []SetAside{{Part: "sha256:1", Reason: "it is of another commit"}},
	})
	want := "a/b 1.0.0 is not complete: of 3 engines, no part has these 3: x/fp32 (runner gpu), x/int8 (runner gpu), y/fp32\n  set aside: sha256:1: it is of another commit"
	if err.Error() != want || !registry.HasCode(err, registry.CodeUnavailable) {
		t.Errorf("got %q, want %q", err, want)
	}
	if hint := strings.Join(registry.Hints(err), "\n"); !strings.Contains(hint, "--target x,y where") {
		t.Errorf("hint %q, want each target once", hint)
	}
}
