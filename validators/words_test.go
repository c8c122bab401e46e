package validators_test

import (
	"math"
	"testing"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators"
)

// A margin says how much is left, and beyond the limit how often what is allowed was used.
func TestMarginText(t *testing.T) {
	t.Parallel()
	for want, value := range map[string]registry.Figure{"75 %": 0.25, "0 %": 1,
		"99 %": 0.001, "2.6 x allowed": 2.6, "100 %": 0, "-": registry.Figure(math.NaN())} {
		if got := validators.MarginText(registry.Check{Figure: "maxError", Value: value, Limit: 1}); got != want {
			t.Errorf("an error of %v of the limit 1: margin %q, want %q", value, got, want)
		}
	}
}

// A drop has the word and the unit of its metric: an error rises, and a share drops.
func TestDropText(t *testing.T) {
	t.Parallel()
	for want, a := range map[string]registry.Accuracy{
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
