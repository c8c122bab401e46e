package validators_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// judged is a release whose only output has these limits, and asks for two cases.
func judged(limits validators.OutputLimits) validators.Limits {
	return validators.Limits{V: validators.LimitsVersion, MinCases: 2, Confidence: 0.95, Precisions: map[string]validators.PrecisionLimits{
		"fp32": {Outputs: map[string]validators.OutputLimits{"logits": limits}},
	}}
}

// judge gives verdict and reasons.
func judge(l validators.Limits, precision string, outputs map[string]tensor.Result,
	accuracy *evidence.Accuracy, cases int) (evidence.Verdict, []evidence.Reason) {
	j := l.Judge(precision, validators.Measured{Outputs: outputs, Accuracy: accuracy, Cases: cases})
	return j.Verdict, j.Reasons
}

// agreed is the result of two cases that are equal on both sides.
func agreed(edit func(r *tensor.Result)) tensor.Result {
	r := tensor.Result{Cases: 2, FullCases: 2, Top1Cases: 2, Elements: 20, MaxAbsCase: -1, MaxRelCase: -1, CosineMin: 1, CosineMinCase: 1,
		SNR: math.Inf(1), SpreadSNR: math.Inf(1), Top1: 1, Top1Rows: 2}
	edit(&r)
	return r
}

// equalResult is the result of cases with a row of values each, equal on both sides.
func equalResult(cases int) tensor.Result {
	return tensor.Result{Cases: cases, FullCases: cases, Top1Cases: cases, Elements: int64(10 * cases),
		MaxAbsCase: -1, MaxRelCase: -1, CosineMin: 1, SNR: math.Inf(1), Top1: 1,
		Top1Rows: int64(cases), Spread: 1, SpreadSNR: math.Inf(1), CaseErrorCase: -1}
}

// A figure at its limit passes. The next one beyond it fails, and so does NaN.
func TestJudgeParityAtTheLimits(t *testing.T) {
	t.Parallel()
	const (
		pass = evidence.VerdictPass
		fail = evidence.VerdictFail
	)
	half, below, above := 0.5, math.Nextafter(0.5, 0), math.Nextafter(0.5, 1)
	cosine := validators.OutputLimits{Cosine: &validators.AtLeast{Min: half}}
	top1 := validators.OutputLimits{Top1: &validators.AtLeast{Min: half}}
	anyTop1 := validators.OutputLimits{Top1: &validators.AtLeast{Min: 0}}
	snr := validators.OutputLimits{SNRdB: &validators.AtLeast{Min: half}}
	maxAbs := validators.OutputLimits{MaxAbs: &validators.AtMost{Max: half}}
	for name, c := range map[string]struct {
		limits validators.OutputLimits
		edit   func(r *tensor.Result)
		want   evidence.Verdict
		code   string
		figure string
	}{
		"cosine at the limit":        {cosine, func(r *tensor.Result) { r.CosineMin = half }, pass, "", ""},
		"cosine below":               {cosine, func(r *tensor.Result) { r.CosineMin = below }, fail, validators.ReasonLimit, "cosine"},
		"cosine NaN":                 {cosine, func(r *tensor.Result) { r.CosineMin = math.NaN() }, fail, validators.ReasonLimit, "cosine"},
		"top1 of an unranked output": {top1, func(r *tensor.Result) { r.Top1, r.Top1Rows = math.NaN(), 0 }, fail, validators.ReasonLimit, "top1"},
		"top1 of at least 0":         {anyTop1, func(r *tensor.Result) { r.Top1, r.Top1Rows = math.NaN(), 0 }, pass, "", ""},
		"snr at the limit":           {snr, func(r *tensor.Result) { r.SpreadSNR = half }, pass, "", ""},
		"snr below":                  {snr, func(r *tensor.Result) { r.SpreadSNR = below }, fail, validators.ReasonLimit, "snrDb"},
		"snr of a broken output":     {snr, func(r *tensor.Result) { r.SpreadSNR = math.Inf(-1) }, fail, validators.ReasonLimit, "snrDb"},
		"maxAbs at the limit":        {maxAbs, func(r *tensor.Result) { r.MaxAbs = half }, pass, "", ""},
		"maxAbs above":               {maxAbs, func(r *tensor.Result) { r.MaxAbs = above }, fail, validators.ReasonLimit, "maxAbs"},
		"maxAbs NaN":                 {maxAbs, func(r *tensor.Result) { r.MaxAbs = math.NaN() }, fail, validators.ReasonLimit, "maxAbs"},
		"an element beyond rtol":     {validators.OutputLimits{RTol: &half}, func(r *tensor.Result) { r.Failed = 1 }, fail, validators.ReasonLimit, "elements"},
		"an element beyond atol":     {validators.OutputLimits{ATol: &half}, func(r *tensor.Result) { r.Failed = 1 }, fail, validators.ReasonLimit, "elements"},
		"all elements within rtol":   {validators.OutputLimits{RTol: &half}, func(r *tensor.Result) { r.MaxAbs = 9 }, pass, "", ""},
		"elements without a limit":   {cosine, func(r *tensor.Result) { r.Failed = 20 }, pass, "", ""},
		"one new NaN":                {cosine, func(r *tensor.Result) { r.NewNaN = 1 }, fail, validators.ReasonNewNaN, "newNaN"},
		"one new infinity":           {cosine, func(r *tensor.Result) { r.NewInf = 1 }, fail, validators.ReasonNewInf, "newInf"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			verdict, reasons := judge(judged(c.limits), "fp32", map[string]tensor.Result{"logits": agreed(c.edit)}, nil, 2)
			if verdict != c.want {
				t.Fatalf("verdict %s for %+v, want %s", verdict, reasons, c.want)
			}
			if c.want == pass {
				if reasons != nil {
					t.Errorf("a pass has reasons %+v", reasons)
				}
				return
			}
			if len(reasons) != 1 || reasons[0].Code != c.code || reasons[0].Figure != c.figure || reasons[0].Output != "logits" {
				t.Errorf("reasons %+v, want one of output logits, code %s, figure %s", reasons, c.code, c.figure)
			}
		})
	}
}

// What was not measured decides nothing, unless something else failed.
func TestJudgeParityUndecided(t *testing.T) {
	t.Parallel()
	limits := judged(validators.OutputLimits{Cosine: &validators.AtLeast{Min: 0.5}})
	same := func(*tensor.Result) {}
	for name, c := range map[string]struct {
		precision string
		outputs   map[string]tensor.Result
		cases     int
		want      []string // codes; none for a pass
	}{
		"as many cases as asked for": {"fp32", map[string]tensor.Result{"logits": agreed(same)}, 2, nil},
		"more cases than compared":   {"fp32", map[string]tensor.Result{"logits": agreed(same)}, 3, []string{validators.ReasonNotRun}},
		"a case too few":             {"fp32", map[string]tensor.Result{"logits": agreed(same)}, 1, []string{validators.ReasonTooFewCases}},
		"an output was not compared": {"fp32", nil, 2, []string{validators.ReasonNotRun}},
		"a precision without limits": {"int8", map[string]tensor.Result{"logits": agreed(same)}, 2, []string{validators.ReasonNotRun, validators.ReasonNotRun}},
		"a case too few, and a fault": {"fp32", map[string]tensor.Result{"logits": agreed(func(r *tensor.Result) { r.CosineMin = 0 })},
			1, []string{validators.ReasonTooFewCases, validators.ReasonLimit}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			verdict, reasons := judge(limits, c.precision, c.outputs, nil, c.cases)
			want := evidence.VerdictPass
			switch {
			case slices.Contains(c.want, validators.ReasonLimit):
				want = evidence.VerdictFail
			case c.want != nil:
				want = evidence.VerdictUndecided
			}
			var got []string
			for _, r := range reasons {
				got = append(got, r.Code)
			}
			if verdict != want || strings.Join(got, " ") != strings.Join(c.want, " ") {
				t.Errorf("verdict %s with reasons %v, want %s with %v", verdict, got, want, c.want)
			}
		})
	}
}

// Labels that are missing decide nothing.
func TestJudgeAccuracyWithoutLabels(t *testing.T) {
	t.Parallel()
	limits := judged(validators.OutputLimits{Cosine: &validators.AtLeast{Min: 0.5}})
	limited := limits
	limited.Accuracy = &validators.AccuracyLimit{Metric: validators.MetricTop1, Drop: &validators.AtMost{Max: 0.25}}
	for name, c := range map[string]struct {
		limits   validators.Limits
		measured *evidence.Accuracy
		want     evidence.Verdict
		code     string
	}{
		"no limit":            {limits, &evidence.Accuracy{Metric: validators.MetricTop1, Cases: 4, Reference: 1, Drop: 1}, evidence.VerdictPass, ""},
		"not measured":        {limited, nil, evidence.VerdictUndecided, validators.ReasonNotRun},
		"measured on no case": {limited, &evidence.Accuracy{Metric: validators.MetricTop1}, evidence.VerdictUndecided, validators.ReasonNotRun},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			verdict, reasons := judge(c.limits, "fp32", map[string]tensor.Result{"logits": agreed(func(*tensor.Result) {})}, c.measured, 2)
			if verdict != c.want {
				t.Fatalf("verdict %s for %+v, want %s", verdict, reasons, c.want)
			}
			if c.code != "" && (len(reasons) != 1 || reasons[0].Code != c.code || reasons[0].Figure != validators.MetricTop1) {
				t.Errorf("reasons %+v, want %s of top1 alone", reasons, c.code)
			}
		})
	}
}

// Whoever compares two other things than a reference and an engine names them in the messages.
func TestSides(t *testing.T) {
	t.Parallel()
	limits := judged(validators.OutputLimits{Cosine: &validators.AtLeast{Min: 1}})
	measured := validators.Measured{Cases: 2, Sides: validators.Sides{Reference: "the original", Engine: "the ONNX file"},
		Outputs: map[string]tensor.Result{"logits": agreed(func(r *tensor.Result) {
			r.NewNaN, r.CosineMin, r.Worst = 1, 0, &tensor.Element{Case: 1, Index: []int64{3}, Reference: 2, Engine: math.NaN(), Excess: math.Inf(1)}
		})}}
	text := fmt.Sprint(limits.Judge("fp32", measured).Reasons)
	for _, want := range []string{"output logits has 1 NaN where the original has none", "in case 1 at [3] the original is 2 and the ONNX file NaN"} {
		if !strings.Contains(text, want) {
			t.Errorf("%s: want %q", text, want)
		}
	}
}

// A reason names the case where a figure is worst, and no case for a figure over all of them.
func TestReasonsNameTheWorstCase(t *testing.T) {
	t.Parallel()
	limits := judged(validators.OutputLimits{Cosine: &validators.AtLeast{Min: 1}, SNRdB: &validators.AtLeast{Min: 1}})
	_, reasons := judge(limits, "fp32", map[string]tensor.Result{
		"logits": agreed(func(r *tensor.Result) { r.CosineMin, r.CosineMinCase, r.SpreadSNR = 0, 0, 0 }),
	}, nil, 2)
	if len(reasons) != 2 {
		t.Fatalf("reasons %+v, want one for the cosine and one for the ratio", reasons)
	}
	if want := "output logits: the cosine of the worst case is 0, below the limit of 1 (case 0)"; reasons[0].Message != want {
		t.Errorf("message %q, want %q", reasons[0].Message, want)
	}
	if want := "output logits: the signal to noise ratio in dB is 0, below the limit of 1"; reasons[1].Message != want {
		t.Errorf("message %q, want %q", reasons[1].Message, want)
	}
}

// A reason says which element failed, where the comparison found one.
func TestToleranceNamesTheWorstElement(t *testing.T) {
	t.Parallel()
	atol := 0.5
	limits := judged(validators.OutputLimits{ATol: &atol})
	for name, c := range map[string]struct {
		worst *tensor.Element
		want  string
		at    int
	}{
		"known":   {&tensor.Element{Case: 1, Index: []int64{0, 3}, Reference: 1, Engine: 2, Excess: 0.5}, ", the worst in case 1 at [0 3]: reference 1, engine 2", 1},
		"unknown": {nil, "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, reasons := judge(limits, "fp32", map[string]tensor.Result{"logits": agreed(func(r *tensor.Result) { r.Failed, r.Worst = 2, c.worst })}, nil, 2)
			want := "output logits: 2 of 20 elements differ by more than 0.5 + 0*|reference|" + c.want
			if len(reasons) != 1 || reasons[0].Message != want || reasons[0].Case != c.at {
				t.Errorf("reasons %+v, want one about case %d: %q", reasons, c.at, want)
			}
		})
	}
}

// Reasons about figures say which element is not finite. Those that count elements do not repeat it.
func TestReasonsNameTheNonFiniteElement(t *testing.T) {
	t.Parallel()
	atol := 0.5
	limits := judged(validators.OutputLimits{ATol: &atol, Cosine: &validators.AtLeast{Min: 0.5}})
	_, reasons := judge(limits, "fp32", map[string]tensor.Result{"logits": agreed(func(r *tensor.Result) {
		r.NewNaN, r.Failed, r.CosineMin = 1, 1, 0
		r.Worst = &tensor.Element{Case: 1, Index: []int64{2}, Reference: 3, Engine: math.NaN(), Excess: math.Inf(1)}
	})}, nil, 2)
	var got []string
	for _, r := range reasons {
		got = append(got, r.Message)
	}
	want := []string{
		"output logits has 1 NaN where the reference has none",
		"output logits: 1 of 20 elements differ by more than 0.5 + 0*|reference|, the worst in case 1 at [2]: reference 3, engine NaN",
		"output logits: the cosine of the worst case is 0, below the limit of 0.5 (case 1); in case 1 at [2] the reference is 3 and the engine NaN",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("messages, wanted with -:\n%s", diff)
	}
}

// Limits per channel are undecided where there are no channels, and what fails anyway fails.
func TestJudgeWithoutChannels(t *testing.T) {
	t.Parallel()
	limits := validators.Limits{V: validators.LimitsVersion, MinCases: 1, Confidence: 0.95, Precisions: map[string]validators.PrecisionLimits{"fp32": {
		Outputs: map[string]validators.OutputLimits{"y": {MaxError: &validators.AtMost{Max: 0.1}, PerChannel: new(true)}}}}}
	for _, c := range []struct {
		none bool
		most float64
		want evidence.Verdict
	}{{false, 0.1, evidence.VerdictPass}, {true, 0.1, evidence.VerdictUndecided}, {true, 0.2, evidence.VerdictFail}} {
		result := tensor.Result{Cases: 8, FullCases: 8, Elements: 8, MaxError: c.most, NoChannels: c.none}
		got := limits.Judge("fp32", validators.Measured{Outputs: map[string]tensor.Result{"y": result}, Cases: 8})
		said := len(got.Reasons) > 0 && strings.Contains(got.Reasons[0].Message, "per_channel: false")
		if got.Verdict != c.want || said != c.none {
			t.Errorf("no channels %t, error %v: %s with %+v; want %s, and how to go on: %t", c.none, c.most, got.Verdict, got.Reasons, c.want, c.none)
		}
	}
}
