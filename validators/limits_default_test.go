package validators_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
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
		"a number":              {validators.KindValue, []validators.Dim{batch}, 1.5, true},
		"a scalar":              {validators.KindValue, nil, 1.5, true},
		"three values":          {validators.KindValue, []validators.Dim{batch, {Size: 3}}, 1.5, true},
		"four values":           {validators.KindValue, []validators.Dim{batch, {Size: 4}}, 0.8, true},
		"four in two dims":      {validators.KindValue, []validators.Dim{batch, {Size: 2}, {Size: 2}}, 0.8, true},
		"an open number of two": {validators.KindState, []validators.Dim{batch, open, {Size: 2}}, 0.8, true},
		"a mask":                {validators.KindMask, []validators.Dim{batch, {Size: 1}, {Size: 8}, {Size: 8}}, 0.8, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := validators.DefaultLimits(validators.PrecisionInt8,
				validators.TensorInfo{Name: "y", Kind: c.kind, DType: tensor.Float32, Shape: c.shape}, 400)
			if err != nil {
				t.Fatal(err)
			}
			if got.CaseError.Max != c.caseError || (got.Systematic != nil) != c.systematic {
				t.Errorf("case_error %v, systematic %v; want %v, and a limit on it: %t", got.CaseError.Max, got.Systematic, c.caseError, c.systematic)
			}
		})
	}
}

// Numbers of 16 bits have the limits of their own precision where those are looser, whatever engines compute in.
func TestDefaultLimitsOfHalfPrecisionOutputs(t *testing.T) {
	t.Parallel()
	output := validators.TensorInfo{Name: "y", Shape: []validators.Dim{{Symbol: "batch"}, {Size: 16}}}
	for _, c := range []struct {
		precision string
		kind      validators.Kind
		dtype     tensor.DType
		as        string // has the limits of float32 in this precision
	}{
		{validators.PrecisionFP32, validators.KindEmbedding, tensor.Float16, validators.PrecisionFP16},
		{validators.PrecisionFP32, validators.KindScores, tensor.Float16, validators.PrecisionFP16},
		{validators.PrecisionFP32, validators.KindValue, tensor.BFloat16, validators.PrecisionBF16},
		{validators.PrecisionFP16, validators.KindState, tensor.BFloat16, validators.PrecisionBF16},
		{validators.PrecisionBF16, validators.KindValue, tensor.Float16, validators.PrecisionBF16},
		{validators.PrecisionInt8, validators.KindValue, tensor.Float16, validators.PrecisionInt8},
		{validators.PrecisionFP32, validators.KindValue, tensor.Float64, validators.PrecisionFP32},
	} {
		limits := func(precision string, dtype tensor.DType) validators.OutputLimits {
			output.Kind, output.DType = c.kind, dtype
			got, err := validators.DefaultLimits(precision, output, 400)
			if err != nil {
				t.Fatal(err)
			}
			return got
		}
		if diff := cmp.Diff(limits(c.as, tensor.Float32), limits(c.precision, c.dtype)); diff != "" {
			t.Errorf("%s of %s in %s: %s", c.kind, c.dtype, c.precision, diff)
		}
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
		"a number":           {[]validators.Dim{batch}, true, 0.045},
		"a scalar":           {nil, true, 0.045},
		"three units":        {[]validators.Dim{batch, open, {Size: 3}}, true, 0.045},
		"an open horizon":    {[]validators.Dim{batch, open}, false, 0.03},
		"as many as allowed": {[]validators.Dim{batch, {Size: tensor.MaxChannels}}, true, 0.045},
		"too many":           {[]validators.Dim{batch, {Size: tensor.MaxChannels + 1}}, false, 0.03},
	} {
		got, err := validators.DefaultLimits(validators.PrecisionInt8,
			validators.TensorInfo{Name: "y", Kind: validators.KindValue, DType: tensor.Float32, Shape: c.shape}, 400)
		if err != nil {
			t.Fatal(err)
		}
		if (got.PerChannel != nil) != c.want || got.Systematic.Max != c.most {
			t.Errorf("%s: per channel %v, systematic %v; want %t and %v", name, got.PerChannel, got.Systematic, c.want, c.most)
		}
	}
}

// The default limit on equal answers is one that the cases prove for an engine that differs as often as
// usual, and the judgement at that limit is exact.
func TestDefaultRates(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		precision string
		cases     int
		want      float64
		most      float64 // cases with another answer with which the limit holds
	}{
		"int4":             {validators.PrecisionInt4, 400, 0.85, 47},
		"int4, 100 cases":  {validators.PrecisionInt4, 100, 0.85, 8},
		"int4, 20 cases":   {validators.PrecisionInt4, 20, 0.78, 1},
		"int8":             {validators.PrecisionInt8, 400, 0.95, 12},
		"int8, 100 cases":  {validators.PrecisionInt8, 100, 0.93, 2},
		"fp16, 1000 cases": {validators.PrecisionFP16, 1000, 0.98, 12},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			scores := validators.TensorInfo{Name: "y", Kind: validators.KindScores, DType: tensor.Float32, Shape: []validators.Dim{{Symbol: "n"}, {Size: 10}}}
			got, err := validators.DefaultLimits(c.precision, scores, c.cases)
			if err != nil {
				t.Fatal(err)
			}
			if got.Top1.Min != c.want {
				t.Errorf("limit %v, want %v", got.Top1.Min, c.want)
			}
			limits := validators.Limits{V: validators.LimitsVersion, Confidence: 0.95,
				Precisions: map[string]validators.PrecisionLimits{c.precision: {Outputs: map[string]validators.OutputLimits{"y": {Top1: got.Top1}}}}}
			for misses, want := range map[float64]evidence.Verdict{c.most: evidence.VerdictPass, c.most + 1: evidence.VerdictUndecided} {
				judged := limits.Judge(c.precision, validators.Measured{Cases: c.cases, Outputs: map[string]tensor.Result{
					"y": {Cases: c.cases, FullCases: c.cases, Elements: int64(c.cases), Top1Cases: c.cases, Top1Rows: int64(c.cases), Top1Misses: misses}}})
				if judged.Verdict != want {
					t.Errorf("%v of %d cases differ: verdict %s, want %s: %+v", misses, c.cases, judged.Verdict, want, judged.Reasons)
				}
			}
		})
	}
}

// A compressed engine has the limits of int8 whatever its numbers are, so that it never passes by limits that an int8 engine would fail.
func TestDefaultLimitsOfCompressed(t *testing.T) {
	t.Parallel()
	output := validators.TensorInfo{Name: "logits", Kind: validators.KindScores, DType: tensor.Float32, Shape: []validators.Dim{{Symbol: "batch"}, {Size: 10}}}
	want, err := validators.DefaultLimits(validators.PrecisionInt8, output, 400)
	if err != nil {
		t.Fatal(err)
	}
	for _, numbers := range validators.Precisions() {
		got, err := validators.DefaultLimits(artifact.CompressedPrecision(numbers), output, 400)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-int8 +got):\n%s", artifact.CompressedPrecision(numbers), diff)
		}
	}
	for _, precision := range []string{"-compressed", "fp3-compressed", "int8-compressed-compressed"} {
		if _, err := validators.DefaultLimits(precision, output, 400); registry.CodeOf(err) != registry.CodeInvalid {
			t.Errorf("%s: %v, want CodeInvalid", precision, err)
		}
	}
}
