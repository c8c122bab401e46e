package validators_test

import (
	"maps"
	"math"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/stats"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// The noise of some cases may exceed the limit by what chance makes of it, given the noise of all
// cases. Systematic errors of few cases say nothing.
func TestJudgeSomeAllowsChance(t *testing.T) {
	t.Parallel()
	chance := func(degrees, few float64) float64 {
		return math.Ceil(100*math.Log10(stats.UpperNoise(few*degrees, 400*degrees, 0.9995))) / 10
	}
	for name, c := range map[string]struct {
		degrees  float64 // of a case; 0: nothing is known of the whole
		cases    int
		snr      float64
		want     evidence.Verdict
		contains string
	}{
		"at the limit, nothing known":    {0, 8, 12, evidence.VerdictPass, ""},
		"below the limit, nothing known": {0, 8, 11.999, evidence.VerdictFail, "below the limit of 12"},
		"what chance explains":           {1, 8, 12 - chance(1, 8) + 1e-9, evidence.VerdictPass, ""},
		"more than chance explains":      {1, 8, 12 - chance(1, 8) - 1e-3, evidence.VerdictFail, "which is 12 less 5.6 that chance explains in 8 cases"},
		"many values in a case":          {100, 8, 12 - chance(100, 8) - 1e-3, evidence.VerdictFail, "which is 12 less 0.7 that"},
		"noise of few cases":             {0.05, 8, 2, evidence.VerdictPass, ""},
		"one case has most of the noise": {0.002, 8, 2, evidence.VerdictPass, ""},
		"and chance excuses 10 dB":       {0.002, 8, 1.99, evidence.VerdictFail, "below the limit of 2, which is 12 less 10 at most for chance in 8 cases"},
		"more cases":                     {1, 32, 12 - chance(1, 32) - 1e-3, evidence.VerdictFail, "in 32 cases"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			limits := validators.Limits{V: validators.LimitsVersion, MinCases: 100, Confidence: 0.95, Precisions: map[string]validators.PrecisionLimits{"int8": {
				Outputs: map[string]validators.OutputLimits{"y": {SNRdB: &validators.AtLeast{Min: 12}, Systematic: &validators.AtMost{Max: 0.1}}}}}}
			some := tensor.Result{Cases: c.cases, FullCases: c.cases, Elements: 10, SpreadSNR: c.snr, Systematic: 0.5}
			whole := map[string]tensor.Result{"y": {Cases: 400, FullCases: 400, CaseDegrees: c.degrees}}
			got := limits.JudgeSome("int8", validators.Measured{Outputs: map[string]tensor.Result{"y": some}, Whole: whole, Cases: c.cases})
			if got.Verdict != c.want || c.contains != "" && !strings.Contains(got.Reasons[0].Message, c.contains) {
				t.Errorf("verdict %s, reasons %+v; want %s with %q", got.Verdict, got.Reasons, c.want, c.contains)
			}
			if limits.Precisions["int8"].Outputs["y"].SNRdB.Min != 12 {
				t.Error("the limits themselves changed")
			}
		})
	}
}

// At another size of an open dimension rows can have one value, of which none is the best.
func TestJudgeSomeWithoutRows(t *testing.T) {
	t.Parallel()
	limits := limits2(validators.OutputLimits{Top1: &validators.AtLeast{Min: 0.9}, MaxAbs: &validators.AtMost{Max: 1}})
	result := equalResult(4)
	result.Top1Rows, result.Top1Cases = 0, 0
	measured := validators.Measured{Outputs: map[string]tensor.Result{"logits": result}, Cases: 4}
	if got := limits.JudgeSome("fp32", measured); got.Verdict != evidence.VerdictPass {
		t.Errorf("some cases: %s, %+v; want a pass by the other limit", got.Verdict, got.Reasons)
	}
	if got := limits.Judge("fp32", measured); got.Verdict != evidence.VerdictFail || !strings.Contains(got.Reasons[0].Message, "if it has no scores, give it another kind") {
		t.Errorf("all cases: %s, %+v; want a failure", got.Verdict, got.Reasons)
	}
}

// Only what chance explains is said to be taken off a limit.
func TestJudgeSomeTakesNothingOff(t *testing.T) {
	t.Parallel()
	limits := judged(validators.OutputLimits{SNRdB: &validators.AtLeast{Min: 30}})
	got := limits.JudgeSome("fp32", validators.Measured{Cases: 2,
		Outputs: map[string]tensor.Result{"logits": agreed(func(r *tensor.Result) { r.SpreadSNR = 20 })}})
	if want := "output logits: the signal to noise ratio in dB is 20, below the limit of 30"; len(got.Reasons) != 1 || got.Reasons[0].Message != want {
		t.Errorf("reasons %+v, want %q alone", got.Reasons, want)
	}
}

// A single case at another size may have a cosine of ten times the noise, and no lower one. Over all cases the limit is what it
// was.
func TestJudgeSomeLoosensTheCosine(t *testing.T) {
	t.Parallel()
	limit := 0.98 // no constant, with which the next line would be exact
	most := 1 / math.Sqrt(1+10*(1/(limit*limit)-1))
	for name, c := range map[string]struct {
		limit, cosine float64
		want          evidence.Verdict
		contains      string
	}{
		"at the limit":            {0.98, 0.98, evidence.VerdictPass, ""},
		"ten times the noise":     {0.98, most, evidence.VerdictPass, ""},
		"a bit more":              {0.98, math.Nextafter(most, 0), evidence.VerdictFail, "below the limit of 0.841"},
		"and why":                 {0.98, 0.8, evidence.VerdictFail, ", which is 0.98 with 10 dB more noise"},
		"1 stays 1":               {1, math.Nextafter(1, 0), evidence.VerdictFail, "below the limit of 1 "},
		"0 stays 0":               {0, 0, evidence.VerdictPass, ""},
		"and nothing is below it": {0, -1e-9, evidence.VerdictFail, "below the limit of 0 "},
		"below 0":                 {-0.5, -0.5, evidence.VerdictPass, ""},
		"below that":              {-0.5, math.Nextafter(-0.5, -1), evidence.VerdictFail, "below the limit of -0.5 "},
		"NaN":                     {0.98, math.NaN(), evidence.VerdictFail, "is NaN"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			limits := validators.Limits{V: validators.LimitsVersion, MinCases: 100, Confidence: 0.95, Precisions: map[string]validators.PrecisionLimits{"int8": {
				Outputs: map[string]validators.OutputLimits{"y": {Cosine: &validators.AtLeast{Min: c.limit}}}}}}
			measured := validators.Measured{Cases: 8, Outputs: map[string]tensor.Result{"y": {Cases: 8, FullCases: 8, Elements: 8, CosineMin: c.cosine}}}
			got := limits.JudgeSome("int8", measured)
			if got.Verdict != c.want || c.contains != "" && !strings.Contains(got.Reasons[0].Message, c.contains) {
				t.Errorf("verdict %s, reasons %+v; want %s with %q", got.Verdict, got.Reasons, c.want, c.contains)
			}
			loosened := c.limit > 0 && c.limit < 1
			for _, r := range got.Reasons {
				if strings.Contains(r.Message, "more noise") != loosened {
					t.Errorf("message %q: want it to name the limit itself: %t", r.Message, loosened)
				}
			}
			limits.MinCases = 1
			whole := limits.Judge("int8", measured)
			if kept := c.cosine >= c.limit; (whole.Verdict == evidence.VerdictPass) != kept {
				t.Errorf("over all cases: verdict %s for a cosine of %v and a limit of %v", whole.Verdict, c.cosine, c.limit)
			}
		})
	}
}

// A single case can exceed limits on errors, and none on what all cases together say.
func TestCheckOne(t *testing.T) {
	t.Parallel()
	limits := limits2(validators.OutputLimits{Equal: &validators.AtLeast{Min: 0.95}, Close: &validators.AtLeast{Min: 0.95}, Top1: &validators.AtLeast{Min: 0.95},
		Systematic: &validators.AtMost{Max: 0.1}, SNRdB: &validators.AtLeast{Min: 12}, MaxAbs: &validators.AtMost{Max: 1}})
	limits.MinCases = 300
	for name, c := range map[string]struct {
		most float64
		want evidence.Verdict
	}{"at the limit": {1, evidence.VerdictPass}, "above it": {math.Nextafter(1, 2), evidence.VerdictFail}} {
		outputs := map[string]tensor.Result{"logits": {Cases: 1, FullCases: 1, Elements: 1000, EqualMisses: 0.003, Classes: []tensor.ClassCases{{Class: 1, Cases: 9, Lost: 9}}, FarCases: 1,
			Top1Rows: 1, Top1Cases: 1, Top1Misses: 1, Systematic: 1, SpreadSNR: 12, MaxAbs: c.most}}
		got := map[string]evidence.Verdict{}
		for _, check := range limits.CheckOne("fp32", outputs) {
			got[check.Figure] = check.Verdict
		}
		if want := map[string]evidence.Verdict{"snrDb": evidence.VerdictPass, "maxAbs": c.want}; !maps.Equal(got, want) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
		if outputs["logits"].Classes == nil {
			t.Errorf("%s: the results themselves changed", name)
		}
	}
}

// Limits of no precision decide nothing, and that is no pass.
func TestJudgeSomeWithoutLimits(t *testing.T) {
	t.Parallel()
	for name, l := range map[string]validators.Limits{"zero": {}, "of another precision": limits2(validators.OutputLimits{MaxAbs: &validators.AtMost{Max: 1}})} {
		got := l.JudgeSome("int4", validators.Measured{Outputs: map[string]tensor.Result{"y": {Cases: 1, FullCases: 1}}, Cases: 1})
		if got.Verdict != evidence.VerdictUndecided {
			t.Errorf("%s: %s, want undecided", name, got.Verdict)
		}
	}
}
