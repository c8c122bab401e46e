package remedy

import (
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/registry"
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
		"found out":       {"fp32", "snrDb", true, WithHint(failed("a"), "a", "computes in bf16", "write load"), "computes in bf16"},
		"a pass":          {"fp32", "snrDb", false, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			head := evidence.ReportHead{Verdict: evidence.VerdictFail, Reasons: []evidence.Reason{{Code: validators.ReasonLimit, Output: "y", Figure: c.figure}}}
			failure := Usual(c.failure, "a", c.precision, c.converted, head)
			all := All(failure)
			switch {
			case c.failure == nil:
				if failure != nil {
					t.Errorf("an engine that passes has the failure %v", failure)
				}
			case len(all) != 1 || all[0].Label != "a" || !strings.Contains(all[0].Cause, c.want) || failure.Error() != "a fails" || !registry.HasCode(failure, registry.CodeLimit):
				t.Errorf("remedies %+v of %v, want one with %q", all, failure, c.want)
			}
		})
	}
}

// A reason about labels goes before others, and outputs that cannot be compared before it. Reports that pass have none.
func TestLeading(t *testing.T) {
	t.Parallel()
	noise, labels := evidence.Reason{Code: validators.ReasonLimit, Output: "y", Figure: "snrDb"}, evidence.Reason{Code: validators.ReasonAccuracy, Figure: "drop"}
	parity := evidence.ReportHead{Verdict: evidence.VerdictFail, Reasons: []evidence.Reason{noise, labels}}
	slow := evidence.ReportHead{Verdict: evidence.VerdictFail, Reasons: []evidence.Reason{{Code: validators.ReasonLatency}}}
	if got, count := Leading(parity, slow); got.Code != labels.Code || count != 3 {
		t.Errorf("the leading reason is %+v of %d", got, count)
	}
	parity.Reasons = append(parity.Reasons, evidence.Reason{Code: validators.ReasonNewInf, Output: "y"})
	if got, count := Leading(parity, slow); got.Code != validators.ReasonNewInf || count != 4 {
		t.Errorf("of infinities it is %+v of %d", got, count)
	}
	parity.Verdict = evidence.VerdictPass
	if got, count := Leading(parity, slow); got.Code != validators.ReasonLatency || count != 1 {
		t.Errorf("of latency it is %+v of %d", got, count)
	}
}
