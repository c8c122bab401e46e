package ingest

import (
	"fmt"
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/validators/format/onnx"
)

// randomOperators are what ONNX leaves to chance, beside Dropout in training, sorted. The driver of onnxruntime has the same list, in
// operators.py, since it runs without this program; a test compares both.
var randomOperators = []string{"Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"}

// randomNotes warns of a model that draws numbers: each run gives something else, of which a verdict shows little.
func randomNotes(what string, model *onnx.Model) []string {
	var found []string
	for op, n := range model.Ops {
		name := op[strings.LastIndex(op, ".")+1:]
		if slices.Contains(randomOperators, name) {
			found = append(found, fmt.Sprintf("%d %s", n, name))
		}
	}
	if len(found) == 0 {
		return nil
	}
	slices.Sort(found)
	return []string{fmt.Sprintf("%s draws numbers (%s), so that each run gives something else: export it without, or give the numbers as an input",
		what, strings.Join(found, ", "))}
}
