package validators_test

import (
	"math"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/validators"
)

// A suggestion is the loosest limit of all engines of a precision, with its margin, and a rate is one
// that the cases of the verdict prove.
func TestSuggestion(t *testing.T) {
	t.Parallel()
	misses := func(v float64) *evidence.Figure { f := evidence.Figure(v); return &f }
	report := func(worst evidence.Figure, wrong float64) evidence.ParityReport {
		return evidence.ParityReport{Confidence: 0.95, Accuracy: &evidence.Accuracy{Metric: "top1", Lost: evidence.Figure(wrong), Right: 500, Cases: 500},
			Checks: evidence.Checks{
				{Trial: evidence.TrialCases, Output: "y", Figure: "maxError", Value: worst, Limit: new(evidence.Figure(2.5)), Cases: 1000}, {Trial: evidence.TrialCases, Output: "y", Figure: "snrDb", Value: 40 - 10*worst, Limit: new(evidence.Figure(12)), AtLeast: true},
				{Trial: evidence.TrialCases, Output: "y", Figure: "top1", Misses: misses(wrong), Cases: 500, Limit: new(evidence.Figure(0.9)), AtLeast: true},
				{Trial: evidence.TrialCases, Output: "y", Figure: "systematic", Value: 0.003, Limit: new(evidence.Figure(0.03))}, {Trial: evidence.TrialCases, Output: "z", Figure: "systematic", Value: 0.018, Limit: new(evidence.Figure(0.03))},
				{Trial: evidence.TrialCases, Output: "z", Figure: "caseError", Value: 0, Limit: new(evidence.Figure(0.5)), Cases: 1000}, {Trial: evidence.TrialCases, Output: "z", Figure: "snrDb", Value: evidence.Figure(math.Inf(1)), Limit: new(evidence.Figure(12)), AtLeast: true},
			}}
	}
	s := validators.NewSuggestion(500, 1000)
	s.Add("cpu/int8", "int8", report(0.4, 0))
	s.Add("gpu/int8", "int8", report(0.2, 2))
	y, z := s.Precisions["int8"]["y"], s.Precisions["int8"]["z"]
	if math.Abs(y.MaxError.Max-0.6) > 1e-12 || y.SNRdB.Min != 32 || math.Abs(z.CaseError.Max-0.05) > 1e-12 || z.SNRdB.Min != 32 {
		t.Errorf("y %v and %v dB, z %v and %v dB; want 0.6, 32, 0.05, 32", y.MaxError.Max, y.SNRdB.Min, z.CaseError.Max, z.SNRdB.Min)
	}
	if math.Abs(y.Systematic.Max-0.015) > 1e-12 || math.Abs(z.Systematic.Max-0.027) > 1e-12 {
		t.Errorf("systematic errors of at most %v and %v, want half of the limit, 0.015, and half more than 0.018", y.Systematic.Max, z.Systematic.Max)
	}
	limits := limits2(validators.OutputLimits{Top1: y.Top1})
	if y.Top1.Min < 0.98 || y.Top1.Min > 0.995 || limits.Provable(validators.Sample{Cases: 1000}) != nil {
		t.Errorf("top1 of at least %v for 6 expected misses in 1000 cases, provable: %v", y.Top1.Min, limits.Provable(validators.Sample{Cases: 1000}))
	}
	limits.Accuracy = &validators.AccuracyLimit{Metric: s.Metric, Drop: s.Drop}
	if err := limits.Provable(validators.Sample{Cases: 1000}); err != nil || s.Drop.Max < 0.006 || s.Drop.Max > 0.03 {
		t.Errorf("a drop of %v, provable: %v", s.Drop.Max, err)
	}
	if text := s.YAML(); !strings.Contains(text,
		"    int8:\n      outputs:\n        \"y\": {snr: {min: 32}, max_error: {max: 0.6}, systematic: {max: 0.015}, top1: {min: 0.9") ||
		!strings.Contains(text, "  accuracy: {metric: top1, drop: {max: 0.0") {
		t.Errorf("yaml:\n%s", text)
	}
}

// A drop of a metric that jumps with an answer is one that the cases of the verdict prove, and the suggestion says
// how the metric is measured.
func TestSuggestionOfOtherMetrics(t *testing.T) {
	t.Parallel()
	for metric, c := range map[string]struct {
		measured, want string
		drop, low      evidence.Figure // of 60 cases, and what they prove of the share of the reference's
	}{
		"map":        {"", "  accuracy: {metric: map, drop: {max: 0.038}}", 0.01, 0.88},       // (0.072-0.01)*sqrt(60/300) more
		"f1_macro":   {"", "  accuracy: {metric: f1_macro, drop: {max: 0.015}}", 0, 0.88},     // 0.072*0.0099/0.0487
		"perplexity": {"", "  accuracy: {metric: perplexity, drop: {max: 0.056}}", 0.01, 0.9}, // (1/0.9-1.01)*sqrt(60/300) more
		"program":    {`metric: program, program: "score.py"`, `  accuracy: {metric: program, program: "score.py", drop: {max: 0.013}}`, 0, 0},
		"map50":      {"", "  accuracy: {metric: map50, drop: {max: 0.013}}", 0, 0},
		"rmse":       {"", "  accuracy: {metric: rmse, drop: {max: 0.005}}", 0, 0},
		"mae":        {"", "", evidence.Figure(math.NaN()), 0}, // the reference has no error to be a share of
	} {
		s := validators.NewSuggestion(60, 300)
		s.Measured = c.measured
		s.Add("cpu/fp32", "fp32", evidence.ParityReport{Confidence: 0.95,
			Accuracy: &evidence.Accuracy{Metric: metric, Cases: 60, Reference: 0.6, Drop: c.drop},
			Checks:   evidence.Checks{{Trial: evidence.TrialCases, Output: "y", Figure: "maxError", Value: 0.1, Limit: new(evidence.Figure(2.5)), Cases: 60}, {Trial: evidence.TrialCases, Figure: "relative", Low: &c.low, AtLeast: true}}})
		if text := s.YAML(); !strings.Contains(text, c.want+"\n") || c.want == "" && (strings.Contains(text, "accuracy") || s.Drop != nil) {
			t.Errorf("%s: %s\nwant %s", metric, text, c.want)
		}
	}
}

// The fewer cases a suggestion rests on, the more of those of the verdict are beyond the worst of them, and
// the larger is the margin. It is never looser than the limit of now, also where no case is known.
func TestSuggestionOfFewCases(t *testing.T) {
	t.Parallel()
	suggest := func(cases int) validators.OutputLimits {
		s := validators.NewSuggestion(cases, 300)
		s.Add("cpu/int8", "int8", evidence.ParityReport{Checks: evidence.Checks{
			{Trial: evidence.TrialCases, Output: "y", Figure: "maxError", Value: 0.4, Limit: new(evidence.Figure(2.5)), Cases: cases}, {Trial: evidence.TrialCases, Output: "y", Figure: "caseError", Value: 0.1, Limit: new(evidence.Figure(0.8)), Cases: cases},
			{Trial: evidence.TrialCases, Output: "y", Figure: "cosine", Value: 0.99, Limit: new(evidence.Figure(0.9)), AtLeast: true, Cases: cases}, {Trial: evidence.TrialCases, Output: "y", Figure: "systematic", Value: 0.02, Limit: new(evidence.Figure(0.03)), Cases: cases},
		}})
		return s.Precisions["int8"]["y"]
	}
	for cases, want := range map[int][3]float64{1200: {0.6, 0.15, 0.985}, 300: {0.63, 0.16, 0.984},
		60: {0.93, 0.24, 0.976}, 9: {2.1, 0.53, 0.947}, 1: {2.5, 0.8, 0.9}, 0: {2.5, 0.8, 0.9}} {
		got := suggest(cases)
		if have := [3]float64{got.MaxError.Max, got.CaseError.Max, got.Cosine.Min}; math.Abs(have[0]-want[0]) > 1e-9 ||
			math.Abs(have[1]-want[1]) > 1e-9 || math.Abs(have[2]-want[2]) > 1e-9 {
			t.Errorf("%d cases for a verdict over 300: max_error, case_error and cosine %v, want %v", cases, have, want)
		}
		if got.Systematic.Max != 0.03 {
			t.Errorf("%d cases: systematic %v, want 0.03, which is of all cases together", cases, got.Systematic.Max)
		}
	}
}

// An engine that fails a limit of now loosens none, and neither does the margin of one that passes.
func TestSuggestionIsNotLooser(t *testing.T) {
	t.Parallel()
	report := func(snr, worst float64) evidence.ParityReport {
		verdict := evidence.VerdictPass
		if snr < 12 {
			verdict = evidence.VerdictFail
		}
		return evidence.ParityReport{ReportHead: evidence.ReportHead{Verdict: verdict}, Checks: evidence.Checks{
			{Trial: evidence.TrialCases, Output: "y", Figure: "snrDb", Value: evidence.Figure(snr), Limit: new(evidence.Figure(12)), AtLeast: true, Verdict: verdict},
			{Trial: evidence.TrialCases, Output: "y", Figure: "maxError", Value: evidence.Figure(worst), Limit: new(evidence.Figure(2.5)), Verdict: evidence.VerdictPass},
			{Trial: evidence.TrialCases, Output: "y", Figure: "top1", Limit: new(evidence.Figure(0.9)), AtLeast: true, Verdict: evidence.VerdictUndecided},
		}}
	}
	s := validators.NewSuggestion(500, 1000)
	s.Add("cpu/int8", "int8", report(1, 2.4))
	if text := s.YAML(); len(s.Precisions) != 0 || s.Reports != 0 || text != "" {
		t.Errorf("suggested %q from an engine that fails, want nothing", text)
	}
	s.Add("gpu/int8", "int8", report(13, 2))
	y := s.Precisions["int8"]["y"]
	if y.SNRdB == nil || y.SNRdB.Min != 12 || y.MaxError.Max != 2.5 || y.Top1.Min != 0.9 || s.Reports != 1 {
		t.Errorf("suggested %s from %d engines, want the limits of now, of one", s.YAML(), s.Reports)
	}
	const want = "output y: snrDb is 1, and the limit is at least 12"
	if len(s.LeftOut) != 1 || s.LeftOut[0].Engine != "cpu/int8" || s.LeftOut[0].Message != want {
		t.Errorf("left out %+v, want cpu/int8: %s", s.LeftOut, want)
	}
	nan := evidence.ParityReport{ReportHead: evidence.ReportHead{Verdict: evidence.VerdictFail, Reasons: []evidence.Reason{{Message: "y has 3 NaN"}}}}
	if s.Add("nan/int8", "int8", nan); len(s.LeftOut) != 2 || s.Reports != 1 {
		t.Errorf("left out %+v, want also the engine that fails without a limit", s.LeftOut)
	}
}
