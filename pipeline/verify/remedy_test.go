package verify

import (
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/remedy"
	"mlpromote.dev/mlpromote/pipeline/run"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/figure"
	"mlpromote.dev/mlpromote/validators"
)

// The cause depends on the numbers of the engine and on the figure, and one that was found out goes before the usual one.
func TestRemedies(t *testing.T) {
	t.Parallel()
	failed := func(name string) error { return registry.Errorf(registry.CodeLimit, "%s fails", name) }
	for name, c := range map[string]struct {
		precision, figure string
		converted         bool
		failure           error
		want              string
	}{
		"int8":            {"int8", "snrDb", false, failed("a"), "too coarse"},
		"compressed int8": {"int8-compressed", "snrDb", false, failed("a"), ""},
		"fp16":            {"fp16", "snrDb", false, failed("a"), "16 bits"},
		"fp32":            {"fp32", "snrDb", false, failed("a"), "a fault of the engine"},
		"a bias":          {"int8", figure.Systematic, false, failed("a"), "prepared in different ways"},
		"groups":          {"int8", figure.Groups, false, failed("a"), "hardly looks at its input"},
		"fewer digits":    {"fp32", "snrDb", true, failed("a"), "fewer digits"},
		"found out":       {"fp32", "snrDb", true, remedy.WithHint(failed("a"), "a", "computes in bf16", "write load"), "computes in bf16"},
		"a pass":          {"fp32", "snrDb", false, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var v Session
			v.candidates = []run.Candidate{{Engine: artifact.Engine{Precision: c.precision}}}
			e := VerifiedEngine{Label: "a"}
			e.Parity.Verdict = evidence.VerdictFail
			e.Parity.Reasons = []evidence.Reason{{Code: validators.ReasonLimit, Output: "y", Figure: c.figure}}
			failures := []error{c.failure}
			remedies(v, []VerifiedEngine{e}, failures, c.converted)
			all := remedy.All(failures[0])
			switch {
			case c.failure == nil:
				if failures[0] != nil {
					t.Errorf("an engine that passes has the failure %v", failures[0])
				}
			case len(all) != 1 || all[0].Label != "a" || !strings.Contains(all[0].Cause, c.want) || failures[0].Error() != "a fails" || !registry.HasCode(failures[0], registry.CodeLimit):
				t.Errorf("remedies %+v of %v, want one with %q", all, failures[0], c.want)
			}
		})
	}
}

// A reason about labels goes before others, and reports that pass have none.
func TestLeading(t *testing.T) {
	t.Parallel()
	var e VerifiedEngine
	e.Parity.Verdict, e.Performance.Verdict = evidence.VerdictFail, evidence.VerdictFail
	noise, labels := evidence.Reason{Code: validators.ReasonLimit, Output: "y", Figure: "snrDb"}, evidence.Reason{Code: validators.ReasonAccuracy, Figure: "drop"}
	e.Parity.Reasons, e.Performance.Reasons = []evidence.Reason{noise, labels}, []evidence.Reason{{Code: validators.ReasonLatency}}
	if got, count := e.Leading(); got.Code != labels.Code || count != 3 {
		t.Errorf("the leading reason is %+v of %d", got, count)
	}
	e.Parity.Verdict = evidence.VerdictPass
	if got, count := e.Leading(); got.Code != validators.ReasonLatency || count != 1 {
		t.Errorf("of latency it is %+v of %d", got, count)
	}
}
