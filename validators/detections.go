package validators

import (
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators/accuracy"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// Detections returns the outputs of kind detections by what they have: one output with rows of x1, y1, x2, y2, score, class, or outputs
// with boxes, scores and perhaps classes. ok is false without any. Errors: CodeInvalid for outputs that are no detections together.
func (i Interface) Detections() (of accuracy.DetectionOutputs, ok bool, err error) {
	var outputs []TensorInfo
	for _, output := range i.Outputs {
		if output.Kind == KindDetections {
			outputs = append(outputs, output)
		}
	}
	if len(outputs) == 0 {
		return of, false, nil
	}
	if of, ok = detectionsOf(outputs); !ok {
		return of, false, registry.Errorf(registry.CodeInvalid, "outputs %s of kind %s: want one output [n, k, 6] of x1, y1, x2, y2, score, class, "+
			"or outputs with boxes [n, k, 4], scores [n, k], and classes [n, k] if there are several", list(names(outputs)), KindDetections)
	}
	return of, true, nil
}

// detectionsOf finds out which output has the boxes, the scores and the classes.
func detectionsOf(outputs []TensorInfo) (of accuracy.DetectionOutputs, ok bool) {
	if len(outputs) == 1 && len(outputs[0].Shape) == 3 && outputs[0].ofBoxes(6) {
		return accuracy.DetectionOutputs{Output: outputs[0].Name}, true
	}
	at := slices.IndexFunc(outputs, func(t TensorInfo) bool {
		return len(t.Shape) == 3 && t.last().Size == 4 && t.DType.Class() == tensor.ClassFloat
	})
	if at < 0 {
		return of, false
	}
	boxes := outputs[at]
	of.Boxes = boxes.Name
	for _, t := range slices.Delete(slices.Clone(outputs), at, at+1) {
		to := &of.Scores
		if t.isClassOfDetection() {
			to = &of.Classes
		}
		if *to != "" || !t.isRowOf(boxes) {
			return of, false
		}
		*to = t.Name
	}
	return of, of.Scores != ""
}

// isRowOf reports whether the output has one number for each box.
func (t TensorInfo) isRowOf(boxes TensorInfo) bool {
	return t.DType != tensor.Bool && slices.Equal(t.Shape, boxes.Shape[:len(boxes.Shape)-1])
}

// isClassOfDetection reports whether an output with a number for each box has its class, and not its score.
func (t TensorInfo) isClassOfDetection() bool {
	name := strings.ToLower(t.Name)
	has := func(part string) bool { return strings.Contains(name, part) }
	return t.DType.Class() == tensor.ClassInteger || (has("class") || has("label")) && !has("score") && !has("conf") && !has("prob")
}

// guessDetections changes the guesses of outputs that are detections together: boxes beside a number for each of them.
func (i Interface) guessDetections(guesses map[string]Guess) {
	var together []TensorInfo
	for _, output := range i.Outputs {
		if guesses[output.Name].Kind == KindBoxes {
			together = append(together, output)
		}
	}
	if len(together) != 1 || len(together[0].Shape) < 2 {
		return
	}
	boxes := together[0]
	for _, output := range i.Outputs {
		if output.Name != boxes.Name && output.isRowOf(boxes) {
			together = append(together, output)
		}
	}
	if _, ok := detectionsOf(together); !ok || len(together) < 2 {
		return
	}
	for _, output := range together {
		guesses[output.Name] = Guess{KindDetections, "boxes and numbers for each of them are detections: " + list(names(together))}
	}
}
