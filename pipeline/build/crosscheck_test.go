package build

import (
	"testing"

	"mlpromote.dev/mlpromote/pipeline/goldenset"
	"mlpromote.dev/mlpromote/validators/format/onnx"
)

// The tolerance of a cross-check follows from how the source counts.
func TestToleranceOfACrossCheck(t *testing.T) {
	t.Parallel()
	with := func(dtypes ...string) *onnx.Model {
		m := &onnx.Model{Tensors: make(map[string]int)}
		for _, d := range dtypes {
			m.Tensors[d]++
		}
		return m
	}
	for name, c := range map[string]struct {
		quantized string
		model     *onnx.Model
		want      goldenset.Tolerance
	}{
		"no ONNX model": {"", nil, goldenset.Float32}, "full precision": {"", with("float32"), goldenset.Float32},
		"float16": {"", with("float32", "float16"), goldenset.Half}, "bfloat16": {"", with("bfloat16"), goldenset.Half},
		"quantized": {"static", with("int8"), goldenset.Quantized}, "quantized, of halves": {"static", with("float16"), goldenset.Quantized},
	} {
		m := Maker{}
		m.Inputs.Quantized, m.Inputs.Imported.Source.Model = c.quantized, c.model
		if got := toleranceOf(m); got != c.want {
			t.Errorf("%s: got %+v, want %+v", name, got, c.want)
		}
	}
}
