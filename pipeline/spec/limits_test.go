package spec_test

import (
	"reflect"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/spec"
)

// per_channel alone is enough to say of an output, for instance to turn a preset's off.
func TestPerChannelAlone(t *testing.T) {
	t.Parallel()
	for _, value := range []string{"true", "false"} {
		t.Run(value, func(t *testing.T) {
			t.Parallel()
			outputs := "{outputs: {boxes: {per_channel: " + value + "}}}"
			s, err := load(t, small+"limits: {outputs: {boxes: {per_channel: "+value+"}}, precisions: {int8: "+outputs+"}}\n")
			if err != nil {
				t.Fatal(err)
			}
			o := s.LimitOverrides()
			for where, got := range map[string]*bool{"outputs": o.Outputs["boxes"].PerChannel, "precisions": o.Precisions["int8"]["boxes"].PerChannel} {
				if got == nil || *got != (value == "true") {
					t.Errorf("%s: per_channel is %v, want %s", where, got, value)
				}
			}
		})
	}
}

// What MeasuredBy writes is read as the same way of measuring.
func TestMeasuredBy(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"metric: top1",
		`metric: program, program: "m.onnx"`,
		`metric: program, program: "m.onnx", lower: true`,
		`metric: top5, output: "logits"`,
		`metric: map, detections: {boxes: "b", scores: "s", classes: "c"}`,
	} {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			s, err := load(t, change("cases/", "{path: cases/, labels: l}")+"limits: {accuracy: {"+text+", drop: {max: 1}}}\n")
			if err != nil {
				t.Fatal(err)
			}
			if got := s.Limits.Accuracy.MeasuredBy(); got != text {
				t.Errorf("got %s, want it as it was read", got)
			}
		})
	}
}

func TestVariantByName(t *testing.T) {
	t.Parallel()
	s, err := load(t, small)
	if err != nil {
		t.Fatal(err)
	}
	if v, ok := s.Variant("int8"); !ok || v.Precision != "int8" {
		t.Errorf("int8: got %+v, %t, want the variant", v, ok)
	}
	if v, ok := s.Variant("fp16"); ok || !reflect.DeepEqual(v, spec.Variant{}) {
		t.Errorf("fp16, which the spec does not have: got %+v, %t, want none", v, ok)
	}
}
