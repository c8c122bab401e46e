package evidence_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"mlpromote.dev/mlpromote/registry/evidence"
)

func TestCensusChanges(t *testing.T) {
	t.Parallel()
	was := evidence.Census{Counts: map[string]int{"ai.onnx.Conv": 3, "ai.onnx.Relu": 2, "ai.onnx.Gemm": 1}}
	is := evidence.Census{Counts: map[string]int{"ai.onnx.Conv": 3, "ai.onnx.Relu": 1, "ai.onnx.QLinearConv": 4}}
	want := []evidence.OperatorChange{{"ai.onnx.Gemm", 1, 0}, {"ai.onnx.QLinearConv", 0, 4}, {"ai.onnx.Relu", 2, 1}}
	if diff := cmp.Diff(want, was.Changes(is)); diff != "" {
		t.Error(diff)
	}
	if got := was.Changes(was); got != nil {
		t.Errorf("the same: got %v, want no change", got)
	}
}
