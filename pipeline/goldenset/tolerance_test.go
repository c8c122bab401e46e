package goldenset

import (
	"reflect"
	"testing"

	"mlpromote.dev/mlpromote/validators/tensor"
)

// Integers are exact, unless the graph rounds activations to them. Tolerances of floats follow the range.
func TestCrossCheckTolerance(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		quantized, half bool
		dtype           tensor.DType
		values          float64
		want            tensor.Options
	}{
		"float32":              {dtype: tensor.Float32, values: 20, want: tensor.Options{ATol: 0.02, RTol: 1e-4}},
		"one number":           {dtype: tensor.Float64, want: tensor.Options{ATol: 1e-6, RTol: 1e-4}},
		"float16":              {dtype: tensor.Float16, values: 20, want: tensor.Options{ATol: 0.4, RTol: 1e-2}},
		"float16 within":       {half: true, dtype: tensor.Float32, values: 20, want: tensor.Options{ATol: 0.4, RTol: 1e-2}},
		"int64":                {dtype: tensor.Int64, values: 20},
		"uint8":                {dtype: tensor.Uint8, values: 20},
		"bool":                 {quantized: true, dtype: tensor.Bool, values: 1},
		"quantized float":      {quantized: true, dtype: tensor.Float32, values: 20, want: tensor.Options{ATol: 2, RTol: 1e-2}},
		"quantized half":       {quantized: true, dtype: tensor.Float16, values: 20, want: tensor.Options{ATol: 2, RTol: 1e-2}},
		"quantized uint8":      {quantized: true, dtype: tensor.Uint8, values: 200, want: tensor.Options{ATol: 20}},
		"quantized narrow":     {quantized: true, dtype: tensor.Int8, values: 5, want: tensor.Options{ATol: 1}},
		"quantized, and class": {quantized: true, dtype: tensor.Int64, values: 200},
	} {
		allowed := Float32
		switch {
		case c.quantized:
			allowed = Quantized
		case c.half:
			allowed = Half
		}
		if got := allowed.Options(c.dtype, c.values); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: tolerances %+v, want %+v", name, got, c.want)
		}
	}
}
