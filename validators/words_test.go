package validators_test

import (
	"math"
	"testing"

	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/validators"
)

// A margin says how much is left, and beyond the limit how often what is allowed was used.
func TestMarginText(t *testing.T) {
	t.Parallel()
	for want, value := range map[string]evidence.Figure{"75 %": 0.25, "0 %": 1,
		"99 %": 0.001, "2.6 x allowed": 2.6, "100 %": 0, "-": evidence.Figure(math.NaN())} {
		if got := validators.MarginText(evidence.Check{Trial: evidence.TrialCases, Figure: "maxError", Value: value, Limit: new(evidence.Figure(1))}); got != want {
			t.Errorf("an error of %v of the limit 1: margin %q, want %q", value, got, want)
		}
	}
}

// A drop has the word and the unit of its metric: an error rises, and a share drops.
func TestDropText(t *testing.T) {
	t.Parallel()
	for want, a := range map[string]evidence.Accuracy{
		"drop of accuracy 0.3 %":  {Metric: "top1", Drop: 0.003},
		"drop of accuracy -0.3 %": {Metric: "top1", Drop: -0.003},
		"drop of f1_macro 1.25 %": {Metric: "f1_macro", Drop: 0.0125},
		"rise of rmse 2 %":        {Metric: "rmse", Drop: 0.02},
	} {
		if got := validators.DropText(a); got != want {
			t.Errorf("%s that dropped by %v: got %q, want %q", a.Metric, a.Drop, got, want)
		}
	}
}

// Values have the unit of their figure: shares in percent, a ratio in dB, and numbers to the digits that count.
func TestValueText(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		check evidence.Check
		value float64
		want  string
	}{
		"top1":               {evidence.Check{Trial: evidence.TrialCases, Figure: "top1"}, 0.98764, "98.76 %"},
		"equal":              {evidence.Check{Trial: evidence.TrialCases, Figure: "equal"}, 1, "100 %"},
		"accuracy of counts": {evidence.Check{Trial: evidence.TrialCases, Figure: "accuracy"}, 0.5, "50 %"},
		"accuracy, a figure": {evidence.Check{Trial: evidence.TrialCases, Figure: "accuracy", Resampled: true}, 0.12345678, "0.123457"},
		"ratio":              {evidence.Check{Trial: evidence.TrialCases, Figure: "snrDb"}, 31.41592, "31.42 dB"},
		"cosine":             {evidence.Check{Trial: evidence.TrialCases, Figure: "cosine"}, 0.99987654, "0.999877"},
		"error":              {evidence.Check{Trial: evidence.TrialCases, Figure: "maxError"}, 0.99987654, "1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := validators.ValueText(c.check, c.value); got != c.want {
				t.Errorf("%v: got %q, want %q", c.value, got, c.want)
			}
		})
	}
}

// Bounds are rounded outwards, so that neither says too much.
func TestBoundsText(t *testing.T) {
	t.Parallel()
	figure := func(v float64) *evidence.Figure { f := evidence.Figure(v); return &f }
	for name, c := range map[string]struct {
		check evidence.Check
		want  string
	}{
		"none":      {evidence.Check{Trial: evidence.TrialCases, Figure: "top1"}, "exact"},
		"one":       {evidence.Check{Trial: evidence.TrialCases, Figure: "top1", Low: figure(0.5)}, "exact"},
		"a share":   {evidence.Check{Trial: evidence.TrialCases, Figure: "top1", Low: figure(0.98761), High: figure(0.98768)}, "98.76 % to 98.77 %"},
		"a figure":  {evidence.Check{Trial: evidence.TrialCases, Figure: "accuracy", Resampled: true, Low: figure(0.5), High: figure(2)}, "0.5 to 2"},
		"unbounded": {evidence.Check{Trial: evidence.TrialCases, Figure: "relative", Low: figure(0), High: figure(math.Inf(1))}, "0 % to +Inf %"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := validators.BoundsText(c.check); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// A limit says from which side it bounds.
func TestLimitText(t *testing.T) {
	t.Parallel()
	for want, c := range map[string]evidence.Check{
		"at least 99 %": {Figure: "top1", Limit: new(evidence.Figure(0.99)), AtLeast: true}, "at most 0.1": {Figure: "maxError", Limit: new(evidence.Figure(0.1))},
	} {
		if got := validators.LimitText(c); got != want {
			t.Errorf("%s of %v: got %q, want %q", c.Figure, c.LimitValue(), got, want)
		}
	}
}

// An accuracy is a share, unless less of it is better or a program gives it.
func TestAccuracyText(t *testing.T) {
	t.Parallel()
	for metric, want := range map[string]string{"top1": "91.23 %", "f1_macro": "91.23 %", "mae": "0.9123", "program": "0.9123", "program_lower": "0.9123"} {
		if got := validators.AccuracyText(evidence.Accuracy{Metric: metric}, 0.91234); got != want {
			t.Errorf("%s: got %q, want %q", metric, got, want)
		}
	}
}
