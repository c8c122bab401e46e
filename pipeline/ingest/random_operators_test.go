package ingest

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/validators/format/onnx"
)

// The driver that asks which operators can be computed again has the same list of those that leave something to chance.
func TestRandomOperatorsOfTheDriver(t *testing.T) {
	t.Parallel()
	code, err := os.ReadFile("../toolchain/drivers/onnxruntime/operators.py")
	if err != nil {
		t.Fatal(err)
	}
	list := regexp.MustCompile(`(?m)^RANDOM = \{(.*)\}$`).FindSubmatch(code)
	if list == nil {
		t.Fatal("operators.py has no RANDOM on one line")
	}
	var names []string
	for _, quoted := range strings.Split(string(list[1]), ", ") {
		names = append(names, strings.Trim(quoted, `"`))
	}
	if slices.Sort(names); !slices.Equal(names, randomOperators) {
		t.Errorf("operators.py has %q, and Go has %q", names, randomOperators)
	}
}

// Nodes that draw numbers are named with how many there are.
func TestRandomNotes(t *testing.T) {
	t.Parallel()
	quiet := &onnx.Model{Ops: map[string]int{"ai.onnx.Conv": 3, "ai.onnx.Dropout": 1, "com.example.RandomForest": 1}}
	if got := randomNotes("the model", quiet); got != nil {
		t.Errorf("%q of a model without any", got)
	}
	drawing := &onnx.Model{Ops: map[string]int{"ai.onnx.RandomUniform": 2, "ai.onnx.Bernoulli": 1, "ai.onnx.Conv": 3}}
	if got := strings.Join(randomNotes("student.onnx", drawing), ""); !strings.HasPrefix(got, "student.onnx draws numbers (1 Bernoulli, 2 RandomUniform), so that") {
		t.Errorf("%q", got)
	}
}
