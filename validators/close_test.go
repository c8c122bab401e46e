package validators_test

import (
	"slices"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// The share of close cases is a rate: it holds if the cases prove it.
func TestJudgeClose(t *testing.T) {
	t.Parallel()
	limits := limits2(validators.OutputLimits{Close: &validators.AtLeast{Min: 0.96}})
	for name, c := range map[string]struct {
		far  int // of 600 cases
		no   bool
		want evidence.Verdict
		says string
	}{
		"none":         {0, false, evidence.VerdictPass, ""},
		"proven":       {15, false, evidence.VerdictPass, ""},
		"not proven":   {16, false, evidence.VerdictUndecided, "the share of cases that are close to the reference is 97.33 % in 600 cases"},
		"excluded":     {40, false, evidence.VerdictFail, "below the limit of 96 %"},
		"not measured": {0, true, evidence.VerdictUndecided, "per_channel: false takes all values together"},
	} {
		result := tensor.Result{Cases: 600, FullCases: 600, Elements: 600, FarCases: c.far, NoFar: c.no}
		measured := validators.Measured{Outputs: map[string]tensor.Result{"logits": result}, Cases: 600}
		got := limits.Judge("fp32", measured)
		if got.Verdict != c.want || c.says != "" && (len(got.Reasons) != 1 || !strings.Contains(got.Reasons[0].Message, c.says)) {
			t.Errorf("%s: verdict %s, reasons %+v; want %s with %q", name, got.Verdict, got.Reasons, c.want, c.says)
		}
		if some := limits.JudgeSome("fp32", measured); some.Verdict != evidence.VerdictPass {
			t.Errorf("%s, of some of the cases: %s, %+v; want a pass", name, some.Verdict, some.Reasons)
		}
		report := evidence.ParityReport{ReportHead: evidence.ReportHead{Verdict: got.Verdict, Reasons: got.Reasons},
			Cases: evidence.CasesRun{Count: 600, Ran: 600}, Rules: validators.LimitsVersion, Confidence: evidence.Figure(got.Confidence), Attempts: 1, Checks: slices.Concat(got.Checks, goldenCompared()),
			Outputs: map[string]evidence.OutputFigures{"logits": {}}}
		again, err := validators.RejudgeWith(report, validators.Beside{Limits: &limits, Precision: "fp32"})
		if err != nil || !c.no && len(again.Differences) > 0 || again.Verdict != c.want {
			t.Errorf("%s, judged again: %s, %+v (%v); want %s", name, again.Verdict, again.Differences, err, c.want)
		}
	}
}

// Outputs of a few values have no error of a case beside that of an element, so that the preset asks that most cases are close. Classes have
// rates of their own, and in finer precisions the signal to noise ratio asks for more.
func TestDefaultClose(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		kind      validators.Kind
		width     int64
		precision string
		cases     int
		want      float64
	}{
		{validators.KindValue, 1, "int8", 600, 0.96},
		{validators.KindValue, 3, "int4", 600, 0.93},
		{validators.KindBoxes, 2, "fp8", 600, 0.96},
		{validators.KindValue, 1, "fp32-compressed", 600, 0.96},
		{validators.KindValue, 1, "int8", 100, 0.92},
		{validators.KindValue, 1, "int8", 20, 0.78},
		{validators.KindValue, 4, "int8", 600, 0},
		{validators.KindValue, 1, "fp16", 600, 0},
		{validators.KindScores, 2, "int8", 600, 0},
	} {
		output := validators.TensorInfo{Name: "y", DType: tensor.Float32, Shape: []validators.Dim{{Symbol: "batch"}, {Size: c.width}}, Kind: c.kind}
		limits, err := validators.DefaultLimits(c.precision, output, c.cases)
		switch {
		case err != nil:
			t.Errorf("%+v: %v", c, err)
		case c.want == 0 && limits.Close != nil:
			t.Errorf("%+v: close is at least %v, want no limit", c, limits.Close.Min)
		case c.want > 0 && (limits.Close == nil || limits.Close.Min != c.want):
			t.Errorf("%+v: close is %v, want at least %v", c, limits.Close, c.want)
		}
	}
}
