package validators_test

import (
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/validators"
)

// Limits on equal answers that say next to nothing are named, unless a preset gives no more for so few cases.
func TestLoose(t *testing.T) {
	t.Parallel()
	at := func(v float64) *validators.AtLeast { return &validators.AtLeast{Min: v} }
	few := validators.ProvableRate(0.99, 0.001, 3)
	if few >= 0.5 {
		t.Fatalf("3 cases prove %v", few)
	}
	for name, c := range map[string]struct {
		limits validators.OutputLimits
		cases  int
		want   string // empty for none
	}{
		"nothing":            {validators.OutputLimits{Equal: at(0)}, 400, `equal of output "y" in fp32 is 0 %: an engine passes`},
		"little":             {validators.OutputLimits{Top1: at(0.49)}, 400, `top1 of output "y" in fp32 is 49 %: an engine passes`},
		"both":               {validators.OutputLimits{Top1: at(0.1), Equal: at(0.2)}, 400, `top1 of output "y" in fp32 is 10 %, equal of output "y" in fp32 is 20 %: an engine`},
		"half":               {validators.OutputLimits{Top1: at(0.5), Equal: at(0.99)}, 400, ""},
		"no rate":            {validators.OutputLimits{SNRdB: at(0)}, 400, ""},
		"default of 3 cases": {validators.OutputLimits{Equal: at(few)}, 3, ""},
		"of 400 cases":       {validators.OutputLimits{Equal: at(few)}, 400, "equal of output"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all := validators.Limits{V: validators.LimitsVersion, Precisions: map[string]validators.PrecisionLimits{"fp32": {Outputs: map[string]validators.OutputLimits{"y": c.limits}}}}
			if got := all.Loose(c.cases); !strings.HasPrefix(got, c.want) || c.want == "" && got != "" {
				t.Errorf("said %q, want %q", got, c.want)
			}
		})
	}
}
