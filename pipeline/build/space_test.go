package build

import (
	"testing"

	"mlpromote.dev/mlpromote/pipeline/plan"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/validators"
)

// What a machine needs free for a build is counted by the sizes of numbers.
func TestSizeOf(t *testing.T) {
	t.Parallel()
	for precision, want := range map[string]float64{
		validators.PrecisionFP32: 1, validators.PrecisionFP16: 0.5, validators.PrecisionInt8: 0.25, validators.PrecisionInt4: 0.15,
		artifact.CompressedPrecision(validators.PrecisionInt8): 0.25, "of its own": 1,
	} {
		if got := sizeOf(precision); got != want {
			t.Errorf("%s: got %v, want %v", precision, got, want)
		}
	}
}

// What a quantized model becomes without a quantizer is as large as it is; the space of a build is not a part of it.
// An engine is stored twice: as it is, and in its image form.
func TestSpaceOfABuild(t *testing.T) {
	t.Parallel()
	compiled := plan.Engine{Precision: "int8", Toolchain: artifact.Toolchain{Name: "r"}}
	quantized := compiled
	quantized.Quantize = map[string]any{"method": "static"}
	source := compiled
	source.From = plan.FromSource
	for name, c := range map[string]struct {
		engine plan.Engine
		from   string // what the source is quantized to
		want   int64
	}{
		"the model as it is":         {plan.Engine{Precision: "fp32"}, "", 3000},
		"quantized by the build":     {quantized, "", 1000 + 250 + 2*250},
		"quantized in the compiler":  {compiled, "", 1500},
		"quantized before":           {compiled, "int8", 3000},
		"compiled from its source":   {source, "int8", 1500},
		"quantized before and again": {quantized, "int8", 1750},
	} {
		b := Prepared{Plan: plan.Plan{Engines: []plan.Engine{c.engine}}}
		b.Inputs.Model, b.Inputs.Quantized = []toolchain.Input{{Size: 1000}}, c.from
		if got := b.space(); got != c.want {
			t.Errorf("%s: %d bytes, want %d", name, got, c.want)
		}
	}
}
