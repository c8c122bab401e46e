package onnx_test

import (
	"slices"
	"testing"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators/format/bound"
	"mlpromote.dev/mlpromote/validators/format/onnx"
)

func TestNodeNames(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		model, op string
		most      int
		want      []string
	}{
		"named":         {"unshaped.onnx", "Identity", 9, []string{"pass", "pass_again"}},
		"so many":       {"unshaped.onnx", "Identity", 1, []string{"pass"}},
		"without names": {"tokens.onnx", "Gather", 9, []string{"Gather_0", "Gather_2", "Gather_4"}},
		"none":          {"tokens.onnx", "Conv", 9, nil},
	} {
		if got, err := onnx.NodeNames(runnable+c.model, c.op, c.most, bound.Limits{}); err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: %q (%v), want %q", name, got, err, c.want)
		}
	}
	if _, err := onnx.NodeNames(runnable+"make.py", "Conv", 9, bound.Limits{}); !registry.HasCode(err, registry.CodeInvalid) {
		t.Errorf("of no model: %v", err)
	}
}
