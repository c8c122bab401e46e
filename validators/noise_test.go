package validators_test

import (
	"math"
	"testing"

	"mlpromote.dev/mlpromote/validators"
)

func TestNoise(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		limits    validators.OutputLimits
		precision string
		db        float64
		from      string
	}{
		"snr goes first":   {validators.OutputLimits{SNRdB: &validators.AtLeast{Min: 33}, CaseError: &validators.AtMost{Max: 0.1}}, "int8", 33, "snr"},
		"case error":       {validators.OutputLimits{CaseError: &validators.AtMost{Max: 0.01}}, "int8", 40, "case_error"},
		"cosine":           {validators.OutputLimits{Cosine: &validators.AtLeast{Min: math.Sqrt(0.5)}}, "int8", 0, "cosine"},
		"a rate alone":     {validators.OutputLimits{Top1: &validators.AtLeast{Min: 0.9}}, "int8", 12, "preset"},
		"fp32":             {validators.OutputLimits{Top1: &validators.AtLeast{Min: 0.9}}, "fp32", 80, "preset"},
		"a new precision":  {validators.OutputLimits{Top1: &validators.AtLeast{Min: 0.9}}, "fp3", 80, "preset"},
		"exact case error": {validators.OutputLimits{CaseError: &validators.AtMost{Max: 0}}, "fp32", 80, "preset"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db, from := c.limits.Noise(c.precision)
			if math.Abs(db-c.db) > 1e-9 || from != c.from {
				t.Errorf("%v dB of %s, want %v of %s", db, from, c.db, c.from)
			}
		})
	}
}
