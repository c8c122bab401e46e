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
			"or outputs with boxes [n, k, 4], scores [n, k], and classes [n, k] if there are several, or scores [n, k, classes]", list(names(outputs)), KindDetections)
	}
	return of, true, nil
}

// detectionsOf finds out which output has the boxes, the scores and the classes.
func detectionsOf(outputs []TensorInfo) (of accuracy.DetectionOutputs, ok bool) {
	if len(outputs) == 1 && len(outputs[0].Shape) == 3 && outputs[0].ofBoxes(6) {
		return accuracy.DetectionOutputs{Output: outputs[0].Name}, true
	}
	at := slices.IndexFunc(outputs, func(t TensorInfo) bool { return t.isBoxes(true) })
	if at < 0 {
		at = slices.IndexFunc(outputs, func(t TensorInfo) bool { return t.isBoxes(false) })
	}
	if at < 0 {
		return of, false
	}
	boxes := outputs[at]
	of.Boxes = boxes.Name
	several := false // classes with a score each
	for _, t := range slices.Delete(slices.Clone(outputs), at, at+1) {
		to, fits := &of.Scores, t.isRowOf(boxes)
		switch {
		case t.scoresClassesOf(boxes):
			fits, several = true, true
		case t.isClassOfDetection():
			to = &of.Classes
		}
		if *to != "" || !fits {
			return of, false
		}
		*to = t.Name
	}
	return of, of.Scores != "" && (!several || of.Classes == "")
}

// scoresClassesOf reports whether the output has a score of each class for each box.
func (t TensorInfo) scoresClassesOf(boxes TensorInfo) bool {
	return len(t.Shape) == len(boxes.Shape) && t.DType.Class() == tensor.ClassFloat && (t.last().Size > 1 || t.last().Symbol != "") &&
		sameSizes(t.Shape[:len(t.Shape)-1], boxes.Shape[:len(boxes.Shape)-1])
}

// isBoxes reports whether the output may have boxes [n, k, 4]; exporters leave the sizes of some outputs open.
func (t TensorInfo) isBoxes(named bool) bool {
	named = named || t.last().Symbol != ""
	return len(t.Shape) == 3 && t.DType.Class() == tensor.ClassFloat && (t.last().Size == 4 || t.last().Symbol != "") &&
		(!named || strings.Contains(strings.ToLower(t.Name), "box"))
}

// isRowOf reports whether the output has one number for each box.
func (t TensorInfo) isRowOf(boxes TensorInfo) bool {
	return t.DType != tensor.Bool && sameSizes(t.Shape, boxes.Shape[:len(boxes.Shape)-1])
}

// sameSizes reports whether dimensions are equal, or may be.
func sameSizes(a, b []Dim) bool {
	return slices.EqualFunc(a, b, func(a, b Dim) bool { return a == b || a.Symbol != "" && b.Symbol != "" })
}

// isClassOfDetection reports whether an output with a number for each box has its class, and not its score.
func (t TensorInfo) isClassOfDetection() bool {
	name := strings.ToLower(t.Name)
	has := func(part string) bool { return strings.Contains(name, part) }
	return t.DType.Class() == tensor.ClassInteger || (has("class") || has("label")) && !has("score") && !has("conf") && !has("prob")
}

// scoreNames are parts of the names of outputs with a score of each class for each box.
var scoreNames = []string{"score", "conf", "prob", "cls", "class", "logit"}

// guessDetections changes the guesses of outputs that are detections together: boxes beside a number for each of them, or one for each class.
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
		name := strings.ToLower(output.Name)
		scores := output.scoresClassesOf(boxes) && slices.ContainsFunc(scoreNames, func(part string) bool { return strings.Contains(name, part) })
		if output.Name != boxes.Name && (output.isRowOf(boxes) || scores) {
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
