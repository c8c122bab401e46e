package validators_test

import (
	"math"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators"
)

// A suggestion is the loosest limit of all engines of a precision, with its margin, and a rate is one
// that the cases of the verdict prove.
func TestSuggestion(t *testing.T) {
	t.Parallel()
	misses := func(v float64) *registry.Figure { f := registry.Figure(v); return &f }
	report := func(worst registry.Figure, wrong float64) registry.ParityReport {
		return registry.ParityReport{Confidence: 0.95, Accuracy: &registry.Accuracy{Metric: "top1", Lost: registry.Figure(wrong), Right: 500, Cases: 500},
			Checks: []registry.Check{
				{Output: "y", Figure: "maxError", Value: worst, Limit: 2.5}, {Output: "y", Figure: "snrDb", Value: 40 - 10*worst, Limit: 12, AtLeast: true},
				{Output: "y", Figure: "top1", Misses: misses(wrong), Cases: 500, Limit: 0.9, AtLeast: true},
				{Output: "z", Figure: "caseError", Value: 0, Limit: 0.5}, {Output: "z", Figure: "snrDb", Value: registry.Figure(math.Inf(1)), Limit: 12, AtLeast: true},
			}}
	}
	s := validators.NewSuggestion(500, 1000)
	s.Add("int8", report(0.4, 0))
	s.Add("int8", report(0.2, 2))
	y, z := s.Precisions["int8"]["y"], s.Precisions["int8"]["z"]
	if math.Abs(y.MaxError.Max-0.6) > 1e-12 || y.SNRdB.Min != 32 || math.Abs(z.CaseError.Max-0.05) > 1e-12 || z.SNRdB.Min != 32 {
		t.Errorf("y %v and %v dB, z %v and %v dB; want 0.6, 32, 0.05, 32", y.MaxError.Max, y.SNRdB.Min, z.CaseError.Max, z.SNRdB.Min)
	}
	limits := limits2(validators.OutputLimits{Top1: y.Top1})
	if y.Top1.Min < 0.98 || y.Top1.Min > 0.995 || limits.Provable(1000) != nil {
		t.Errorf("top1 of at least %v for 6 expected misses in 1000 cases, provable: %v", y.Top1.Min, limits.Provable(1000))
	}
	limits.Accuracy = &validators.AccuracyLimit{Metric: s.Metric, Drop: s.Drop}
	if err := limits.Provable(1000); err != nil || s.Drop.Max < 0.006 || s.Drop.Max > 0.03 {
		t.Errorf("a drop of %v, provable: %v", s.Drop.Max, err)
	}
	if text := s.YAML(); !strings.Contains(text, "    int8:\n      outputs:\n        \"y\": {snr: {min: 32}, max_error: {max: 0.6}, top1: {min: 0.9") ||
		!strings.Contains(text, "  accuracy: {metric: top1, drop: {max: 0.0") {
		t.Errorf("yaml:\n%s", text)
	}
}
