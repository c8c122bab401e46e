package verify

import (
	"testing"

	"mlpromote.dev/mlpromote/pipeline/consistency"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
)

// A machine that is too slow for the requests of several clients says nothing against an engine, and proves nothing.
func TestNotLoaded(t *testing.T) {
	t.Parallel()
	for want, err := range map[evidence.Verdict]error{
		evidence.VerdictUndecided: registry.Errorf(registry.CodeUnavailable, "%w, 60 s", consistency.ErrStopped),
		evidence.VerdictFail:      registry.Errorf(registry.CodeInternal, "the server answers: status 500"),
	} {
		if got, reasons := notLoaded(err).Verdict(); got != want || len(reasons) != 1 {
			t.Errorf("%v: %s %v, want %s", err, got, reasons, want)
		}
	}
}
