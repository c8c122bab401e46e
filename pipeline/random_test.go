package pipeline

import (
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/validators/format"
)

// Nodes that draw numbers are named with how many there are.
func TestRandomNotes(t *testing.T) {
	t.Parallel()
	quiet := &format.Model{Ops: map[string]int{"ai.onnx.Conv": 3, "ai.onnx.Dropout": 1, "com.example.RandomForest": 1}}
	if got := randomNotes("the model", quiet); got != nil {
		t.Errorf("%q of a model without any", got)
	}
	drawing := &format.Model{Ops: map[string]int{"ai.onnx.RandomUniform": 2, "ai.onnx.Bernoulli": 1, "ai.onnx.Conv": 3}}
	if got := strings.Join(randomNotes("student.onnx", drawing), ""); !strings.HasPrefix(got, "student.onnx draws numbers (1 Bernoulli, 2 RandomUniform), so that") {
		t.Errorf("%q", got)
	}
}
