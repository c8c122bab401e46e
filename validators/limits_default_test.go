package validators_test

import (
	"testing"

	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// The error of a case of few values is that of an element. Places of a mask are no channels.
func TestDefaultLimitsFollowTheShape(t *testing.T) {
	t.Parallel()
	batch, open := validators.Dim{Symbol: "batch"}, validators.Dim{Symbol: "seq"}
	for name, c := range map[string]struct {
		kind       validators.Kind
		shape      []validators.Dim
		caseError  float64
		systematic bool
	}{
		"a number":              {validators.KindValue, []validators.Dim{batch}, 2.5, true},
		"a scalar":              {validators.KindValue, nil, 2.5, true},
		"three values":          {validators.KindValue, []validators.Dim{batch, {Size: 3}}, 2.5, true},
		"four values":           {validators.KindValue, []validators.Dim{batch, {Size: 4}}, 0.8, true},
		"four in two dims":      {validators.KindValue, []validators.Dim{batch, {Size: 2}, {Size: 2}}, 0.8, true},
		"an open number of two": {validators.KindState, []validators.Dim{batch, open, {Size: 2}}, 0.8, true},
		"a mask":                {validators.KindMask, []validators.Dim{batch, {Size: 1}, {Size: 8}, {Size: 8}}, 0.8, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := validators.DefaultLimits(validators.PrecisionInt8, validators.TensorInfo{Name: "y", Kind: c.kind, DType: tensor.Float32, Shape: c.shape}, 400)
			if err != nil {
				t.Fatal(err)
			}
			if got.CaseError.Max != c.caseError || (got.Systematic != nil) != c.systematic {
				t.Errorf("case_error %v, systematic %v; want %v, and a limit on it: %t", got.CaseError.Max, got.Systematic, c.caseError, c.systematic)
			}
		})
	}
}
