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

// Where the last dimension is open an index along it is no channel: cases may have another number of them.
func TestDefaultLimitsPerChannel(t *testing.T) {
	t.Parallel()
	batch, open := validators.Dim{Symbol: "batch"}, validators.Dim{Symbol: "horizon"}
	for name, c := range map[string]struct {
		shape []validators.Dim
		want  bool
		most  float64
	}{
		"a number":           {[]validators.Dim{batch}, true, 0.06},
		"a scalar":           {nil, true, 0.06},
		"three units":        {[]validators.Dim{batch, open, {Size: 3}}, true, 0.06},
		"an open horizon":    {[]validators.Dim{batch, open}, false, 0.03},
		"as many as allowed": {[]validators.Dim{batch, {Size: tensor.MaxChannels}}, true, 0.06},
		"too many":           {[]validators.Dim{batch, {Size: tensor.MaxChannels + 1}}, false, 0.03},
	} {
		got, err := validators.DefaultLimits(validators.PrecisionInt8, validators.TensorInfo{Name: "y", Kind: validators.KindValue, DType: tensor.Float32, Shape: c.shape}, 400)
		if err != nil {
			t.Fatal(err)
		}
		if (got.PerChannel != nil) != c.want || got.Systematic.Max != c.most {
			t.Errorf("%s: per channel %v, systematic %v; want %t and %v", name, got.PerChannel, got.Systematic, c.want, c.most)
		}
	}
}
