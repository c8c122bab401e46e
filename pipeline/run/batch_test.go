package run

import (
	"slices"
	"testing"

	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/format/onnx"
)

// Leading dimensions without a name are one batch, unless the graph excludes that.
func TestWithBatch(t *testing.T) {
	t.Parallel()
	open := onnx.Dim{}
	named := func(name string) onnx.Dim { return onnx.Dim{Param: name} }
	fixed := func(n int64) onnx.Dim { return onnx.Dim{Known: true, Value: n} }
	value := func(name string, dims ...onnx.Dim) onnx.Value {
		return onnx.Value{Name: name, DType: "float32", Shape: dims}
	}
	for name, c := range map[string]struct {
		inputs, outputs []onnx.Value
		symbol          string // in front of the first input
		unnamed         []string
	}{
		"columns of skl2onnx":           {[]onnx.Value{value("radius", open, fixed(1)), value("area", open, fixed(1))}, []onnx.Value{value("label", open)}, "batch", []string{"radius_0", "area_0", "label_0"}},
		"an output without a name":      {[]onnx.Value{value("x", named("N"), fixed(4))}, []onnx.Value{value("y", open, fixed(2))}, "N", []string{"y_0"}},
		"all named":                     {[]onnx.Value{value("x", named("N"))}, []onnx.Value{value("y", named("N"))}, "N", nil},
		"two names":                     {[]onnx.Value{value("x", named("N")), value("z", named("M"))}, []onnx.Value{value("y", open)}, "N", nil},
		"a fixed size":                  {[]onnx.Value{value("x", open), value("table", fixed(7))}, []onnx.Value{value("y", open)}, "x_0", nil},
		"a scalar output":               {[]onnx.Value{value("x", open)}, []onnx.Value{value("loss")}, "x_0", nil},
		"a name that another place has": {[]onnx.Value{value("x", open, named("batch"))}, []onnx.Value{value("y", open)}, "x_0", nil},
		"an output without a shape":     {[]onnx.Value{value("x", open)}, []onnx.Value{{Name: "y", DType: "float32"}}, "batch", []string{"x_0"}},
	} {
		m := &onnx.Model{Inputs: c.inputs, Outputs: c.outputs}
		for i := range m.Outputs {
			if m.Outputs[i].Shape == nil && len(m.Outputs) == 1 && name == "a scalar output" {
				m.Outputs[i].Shape = []onnx.Dim{}
			}
		}
		inputs, err := TensorInfos("input", m.Inputs)
		if err != nil {
			t.Fatal(err)
		}
		got, unnamed := WithBatch(m, validators.Interface{Inputs: inputs})
		if symbol := got.Inputs[0].Shape[0].Symbol; symbol != c.symbol || !slices.Equal(unnamed, c.unnamed) {
			t.Errorf("%s: %q in front, in place of %q; want %q and %q", name, symbol, unnamed, c.symbol, c.unnamed)
		}
		if inputs[0].Shape[0].Symbol == got.Inputs[0].Shape[0].Symbol && c.symbol == "batch" {
			t.Errorf("%s: the interface that was given is changed", name)
		}
	}
}
