package validators_test

import (
	"math"
	"testing"

	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/validators"
)

func TestMargin(t *testing.T) {
	t.Parallel()
	f := func(v float64) *evidence.Figure { figure := evidence.Figure(v); return &figure }
	for name, c := range map[string]struct {
		check evidence.Check
		want  float64
	}{
		"an error of a quarter of the limit": {evidence.Check{Trial: evidence.TrialCases, Figure: "maxError", Value: 0.25, Limit: new(evidence.Figure(1))}, 0.75},
		"an error at the limit":              {evidence.Check{Trial: evidence.TrialCases, Figure: "maxError", Value: 1, Limit: new(evidence.Figure(1))}, 0},
		"an error of twice the limit":        {evidence.Check{Trial: evidence.TrialCases, Figure: "caseError", Value: 2, Limit: new(evidence.Figure(1))}, -1},
		"no error, and none allowed":         {evidence.Check{Trial: evidence.TrialCases, Figure: "maxAbs"}, 1},
		"an error, and none allowed":         {evidence.Check{Trial: evidence.TrialCases, Figure: "elements", Value: 1}, math.Inf(-1)},
		"20 dB above the limit":              {evidence.Check{Trial: evidence.TrialCases, Figure: "snrDb", Value: 40, Limit: new(evidence.Figure(20)), AtLeast: true}, 0.9},
		"equal outputs":                      {evidence.Check{Trial: evidence.TrialCases, Figure: "snrDb", Value: evidence.Figure(math.Inf(1)), Limit: new(evidence.Figure(20)), AtLeast: true}, 1},
		"6 dB below the limit":               {evidence.Check{Trial: evidence.TrialCases, Figure: "snrDb", Value: 20 - evidence.Figure(20*math.Log10(2)), Limit: new(evidence.Figure(20)), AtLeast: true}, -1},
		"a cosine halfway to 1":              {evidence.Check{Trial: evidence.TrialCases, Figure: "cosine", Value: 0.995, Limit: new(evidence.Figure(0.99)), AtLeast: true}, 0.5},
		"a rate by its lower bound":          {evidence.Check{Trial: evidence.TrialCases, Figure: "top1", Value: 1, Limit: new(evidence.Figure(0.98)), AtLeast: true, Low: f(0.99), High: f(1)}, 0.5},
		"a drop by its upper bound":          {evidence.Check{Trial: evidence.TrialCases, Figure: "drop", Value: -0.1, Limit: new(evidence.Figure(0.02)), Low: f(-0.2), High: f(0.015)}, 0.25},
		"a gain of accuracy":                 {evidence.Check{Trial: evidence.TrialCases, Figure: "drop", Value: -0.1, Limit: new(evidence.Figure(0.02)), Low: f(-0.2), High: f(-0.01)}, 1},
		"no number":                          {evidence.Check{Trial: evidence.TrialCases, Figure: "maxAbs", Value: evidence.Figure(math.NaN()), Limit: new(evidence.Figure(1))}, math.NaN()},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := validators.Margin(c.check); got != c.want && math.Abs(got-c.want) > 1e-12 && !(math.IsNaN(got) && math.IsNaN(c.want)) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}
