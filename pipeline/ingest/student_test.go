package ingest

import (
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/plan"
	"mlpromote.dev/mlpromote/pipeline/spec"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/format/onnx"
)

func size(n int64) validators.Dim { return validators.Dim{Size: n} }

func open(name string) validators.Dim { return validators.Dim{Symbol: name} }

// A model that takes the place of the source has its inputs and outputs; only open dimensions may be called otherwise.
func TestOtherInterface(t *testing.T) {
	t.Parallel()
	image := validators.TensorInfo{Name: "image", DType: "float32", Shape: []validators.Dim{open("batch"), size(3)}}
	logits := validators.TensorInfo{Name: "logits", DType: "float32", Shape: []validators.Dim{open("batch"), size(10)}}
	with := func(t validators.TensorInfo, change func(*validators.TensorInfo)) validators.TensorInfo {
		t.Shape = append([]validators.Dim(nil), t.Shape...)
		change(&t)
		return t
	}
	want := validators.Interface{Inputs: []validators.TensorInfo{image}, Outputs: []validators.TensorInfo{logits}}
	for name, c := range map[string]struct {
		inputs, outputs []validators.TensorInfo
		why             string
	}{
		"the same": {want.Inputs, want.Outputs, ""},
		"an open dimension with another name": {
			[]validators.TensorInfo{with(image, func(t *validators.TensorInfo) { t.Shape[0] = open("N") })}, want.Outputs, ""},
		"no output": {want.Inputs, nil, "it has 0 outputs, and the source has 1 output"},
		"two inputs": {
			[]validators.TensorInfo{image, image}, want.Outputs, "it has 2 inputs, and the source has 1 input"},
		"another name": {
			[]validators.TensorInfo{with(image, func(t *validators.TensorInfo) { t.Name = "pixels" })}, want.Outputs,
			"input pixels float32[batch,3] is image float32[batch,3] in the source"},
		"another type": {
			want.Inputs, []validators.TensorInfo{with(logits, func(t *validators.TensorInfo) { t.DType = "float16" })},
			"output logits float16[batch,10] is logits float32[batch,10] in the source"},
		"another size": {
			want.Inputs, []validators.TensorInfo{with(logits, func(t *validators.TensorInfo) { t.Shape[1] = size(9) })},
			"output logits float32[batch,9] is logits float32[batch,10] in the source"},
		"a size in place of an open dimension": {
			[]validators.TensorInfo{with(image, func(t *validators.TensorInfo) { t.Shape[0] = size(1) })}, want.Outputs,
			"input image float32[1,3] is image float32[batch,3] in the source"},
		"another rank": {
			[]validators.TensorInfo{with(image, func(t *validators.TensorInfo) { t.Shape = t.Shape[:1] })}, want.Outputs,
			"input image float32[batch] is image float32[batch,3] in the source"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := otherInterface(want, validators.Interface{Inputs: c.inputs, Outputs: c.outputs})
			if got != c.why {
				t.Errorf("got %q, want %q", got, c.why)
			}
		})
	}
}

// What a spec says of the precision of a student is what the student is.
func TestCheckStudentQuantized(t *testing.T) {
	t.Parallel()
	of := func(bits int) onnx.Quantized { return onnx.Quantized{Form: onnx.FormQDQ, Nodes: 3, Bits: bits} }
	full, eight, four, packed := onnx.Quantized{}, of(8), of(4), of(0)
	none, static := &spec.Quantize{Method: spec.MethodNone}, &spec.Quantize{Method: "static"}
	prune := []spec.Compress{{Method: spec.MethodPrune, Pattern: spec.PatternTwoOfFour}}
	compressed := artifact.CompressedPrecision
	for name, c := range map[string]struct {
		v     spec.Variant
		found onnx.Quantized
		why   string
	}{
		"in full precision":                    {spec.Variant{}, full, ""},
		"quantized here":                       {spec.Variant{Quantize: static}, full, ""},
		"compressed here":                      {spec.Variant{Compress: prune}, full, ""},
		"said to be quantized, and is not":     {spec.Variant{Quantize: none}, full, "it is not quantized"},
		"quantized, and said so":               {spec.Variant{Quantize: none, Precision: compressed("int8")}, eight, ""},
		"quantized to four bits":               {spec.Variant{Quantize: none, Precision: compressed("int4")}, four, ""},
		"quantized, and nothing is said":       {spec.Variant{}, eight, "write quantize: {method: none}"},
		"quantized, to be quantized again":     {spec.Variant{Quantize: static}, eight, "write quantize: {method: none}"},
		"quantized, to be compressed":          {spec.Variant{Quantize: none, Compress: prune}, eight, "compression starts from weights in full precision"},
		"said to have fewer bits":              {spec.Variant{Quantize: none, Precision: compressed("int4")}, eight, "write quantize: {method: none, bits: 8}"},
		"said to have more bits":               {spec.Variant{Quantize: none, Precision: compressed("int8")}, four, "write quantize: {method: none, bits: 4}"},
		"of bits that the graph does not show": {spec.Variant{Quantize: none, Precision: compressed("int8")}, packed, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := checkStudentQuantized(c.v, c.found, func(format string, args ...any) error {
				return registry.Errorf(registry.CodeInvalid, format, args...)
			})
			if (err == nil) != (c.why == "") || err != nil && !strings.Contains(err.Error(), c.why) {
				t.Errorf("got %v, want %q", err, c.why)
			}
		})
	}
}

// The file of a student is called as the spec calls it, and its external data as they lie beside it.
func TestStudentResources(t *testing.T) {
	t.Parallel()
	got := StudentResources(&plan.Student{Written: "students/small.onnx", Files: []toolchain.Input{{Name: "model.onnx"}, {Name: "data/weights.bin"}}})
	if len(got) != 2 || got[0].Name != "student model.onnx" || got[0].Annotations["path"] != "students/small.onnx" ||
		got[1].Name != "student data/weights.bin" || got[1].Annotations["path"] != "students/weights.bin" {
		t.Errorf("got %+v, want students/small.onnx, then students/weights.bin", got)
	}
	if got := StudentResources(&plan.Student{}); len(got) != 0 {
		t.Errorf("of no files: got %+v", got)
	}
}
