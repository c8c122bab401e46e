package ingest

import (
	"slices"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/spec"
	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/format/onnx"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// Values are drawn from what the spec declares, and else from what the graph does with the input.
func TestDraws(t *testing.T) {
	t.Parallel()
	two, five := 2.0, 5.0
	for name, c := range map[string]struct {
		dtype    tensor.DType
		use      onnx.Use
		declared spec.Draw
		min, max float64
		bounded  bool
		mask     bool
	}{
		"nothing is known":                {dtype: tensor.Float32},
		"a declared range":                {dtype: tensor.Int64, use: onnx.Use{Rows: 30}, declared: spec.Draw{Min: &two, Max: &five}, min: 2, max: 5, bounded: true},
		"half of a range":                 {dtype: tensor.Float32, declared: spec.Draw{Min: &two}},
		"declared values":                 {dtype: tensor.Int64, use: onnx.Use{Rows: 30}, declared: spec.Draw{Values: []float64{1, 2}}},
		"rows of an embedding":            {dtype: tensor.Int64, use: onnx.Use{Rows: 30}, max: 29, bounded: true},
		"more rows than int8 counts":      {dtype: tensor.Int8, use: onnx.Use{Rows: 300}, max: 127, bounded: true},
		"more rows than half of uint8":    {dtype: tensor.Uint8, use: onnx.Use{Rows: 300}, max: 127, bounded: true},
		"fewer rows than int8 counts":     {dtype: tensor.Int8, use: onnx.Use{Rows: 100}, max: 99, bounded: true},
		"rows that fractions do not name": {dtype: tensor.Float32, use: onnx.Use{Rows: 30}},
		"a mask":                          {dtype: tensor.Int64, use: onnx.Use{Mask: true}, mask: true},
		"an image":                        {dtype: tensor.Float32, use: onnx.Use{Image: true}, max: 1, bounded: true},
		"an image of bytes":               {dtype: tensor.Uint8, use: onnx.Use{Image: true}, max: 255, bounded: true},
		"an image of int8":                {dtype: tensor.Int8, use: onnx.Use{Image: true}},
		"quantized, uint8":                {dtype: tensor.Uint8, use: onnx.Use{Quantized: true}, max: 255, bounded: true},
		"quantized, int8":                 {dtype: tensor.Int8, use: onnx.Use{Quantized: true}, min: -128, max: 127, bounded: true},
		"quantized, of a float":           {dtype: tensor.Float32, use: onnx.Use{Quantized: true}},
		"int8 of which nothing is known":  {dtype: tensor.Int8},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := draw(validators.TensorInfo{DType: c.dtype}, c.use, c.declared)
			if got.Min != c.min || got.Max != c.max || got.Bounded != c.bounded || got.Mask != c.mask || got.Rows != c.use.Rows || !slices.Equal(got.Values, c.declared.Values) {
				t.Errorf("got %+v, want %v to %v, bounded %t, a mask %t", got, c.min, c.max, c.bounded, c.mask)
			}
		})
	}
}
