package validators

import (
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// Kind says what the values of an output mean. The kind selects the default limits and the
// figures of a report.
type Kind string

// The kinds of outputs.
const (
	KindScores      Kind = "scores"      // one number for each class in each row; the largest wins
	KindProbability Kind = "probability" // the same, from 0 to 1; or one number for each case: that of yes
	KindClass       Kind = "class"       // the number of a class
	KindLabel       Kind = "label"       // what a class is called, or several yes and no
	KindEmbedding   Kind = "embedding"   // a vector of which the direction counts
	KindValue       Kind = "value"       // quantities, each with a unit of its own
	KindMask        Kind = "mask"        // one number for each pixel or position
	KindBoxes       Kind = "boxes"       // coordinates
	KindDetections  Kind = "detections"  // boxes, their scores or their classes, in any order
	KindTokens      Kind = "tokens"      // scores of the tokens at each position
	KindState       Kind = "state"       // what a later run gets as input
	KindOther       Kind = "other"
)

// Kinds lists the kinds.
func Kinds() []Kind {
	return []Kind{KindScores, KindProbability, KindClass, KindLabel, KindEmbedding, KindValue,
		KindMask, KindBoxes, KindDetections, KindTokens, KindState, KindOther}
}

// Ranks reports whether the largest value of each row is the answer, where a row has several.
func (k Kind) Ranks() bool { return k == KindScores || k == KindProbability || k == KindTokens }

// Names reports whether each element is an answer, which is right or wrong.
func (k Kind) Names() bool { return k == KindClass || k == KindLabel }

// Check checks that the output can be of the kind. Errors: CodeInvalid.
func (k Kind) Check(output TensorInfo) error {
	float := output.DType.Class() == tensor.ClassFloat
	switch {
	case !slices.Contains(Kinds(), k):
		var all []string
		for _, known := range Kinds() {
			all = append(all, string(known))
		}
		return registry.Errorf(registry.CodeInvalid, "output %q: kind %.40q: want one of %s", output.Name, k, strings.Join(all, ", "))
	case k.Names() && float:
		return registry.Errorf(registry.CodeInvalid, "output %q: kind %s is of integers or booleans, and the output is %s", output.Name, k, output.DType)
	case k == KindProbability && output.isOneNumber() && float:
		return nil
	case k.Ranks() && len(output.Shape) == 0:
		return registry.Errorf(registry.CodeInvalid, "output %q: kind %s has one number for each class, and the output is a scalar", output.Name, k)
	case k.Ranks() && len(output.Shape) == 1 && output.Shape[0].Symbol != "":
		return registry.Errorf(registry.CodeInvalid,
			"output %q of shape %v: kind %s has one number for each class, and the output has one for each case: want kind %s", output.Name, output.Shape, k, KindValue)
	case k.Ranks() && output.last().Size == 1:
		return registry.Errorf(registry.CodeInvalid,
			"output %q of shape %v: kind %s has one number for each class, and its last dimension is 1: want kind %s", output.Name, output.Shape, k, KindValue)
	}
	return nil
}

// Ranks reports whether the largest value of each row is the answer: of scores and probabilities of several classes.
func (t TensorInfo) Ranks() bool { return t.Kind.Ranks() && !t.isYesOrNo() }

// isYesOrNo reports whether the output is the probability of yes, one number for each case.
func (t TensorInfo) isYesOrNo() bool { return t.Kind == KindProbability && t.isOneNumber() }

// isOneNumber reports whether the output has one number for each case, by its shape.
func (t TensorInfo) isOneNumber() bool {
	if len(t.Shape) == 1 && t.Shape[0].Symbol == "" && t.Shape[0].Size != 1 { // a model without a batch
		return false
	}
	for _, d := range t.Shape[min(1, len(t.Shape)):] {
		if d.Size != 1 {
			return false
		}
	}
	return true
}

// ClassAxis returns the axis of the scores of classes that a mask has at each place, counted from the last one: 2 of [batch, classes, height,
// width]. ok is false for other outputs, and for a mask with a single number at each place. The fewest of the indices in front and of those
// at the end are the classes.
func (t TensorInfo) ClassAxis() (fromLast int, ok bool) {
	n := len(t.Shape)
	if t.Kind != KindMask || t.DType.Class() != tensor.ClassFloat || n < 3 {
		return 0, false
	}
	const mostClasses = 256
	front, end := t.Shape[1], t.last()
	isClasses := func(d Dim) bool { return d.Symbol == "" && d.Size > 1 && d.Size <= mostClasses }
	switch {
	case isClasses(front) && !(isClasses(end) && end.Size < front.Size):
		return n - 2, true
	case isClasses(end) && front.Size != 1:
		return 0, true
	}
	return 0, false
}

func (t TensorInfo) last() Dim {
	if len(t.Shape) == 0 {
		return Dim{}
	}
	return t.Shape[len(t.Shape)-1]
}

// guesses are the parts of names by which outputs are commonly known, and the operators that
// make an output of a kind. The first that fits counts.
var guesses = []struct {
	kind  Kind
	parts []string
}{
	{KindScores, []string{"logit"}},
	{KindMask, []string{"mask", "segment"}},
	{KindBoxes, []string{"box", "coord"}},
	{KindState, []string{"state", "hidden", "cache", "past", "present", "cell_", "_cell", "h_n", "c_n"}},
	{KindEmbedding, []string{"embed", "feature", "pool", "vector"}},
	{KindProbability, []string{"prob", "softmax", "sigmoid"}},
	{KindScores, []string{"score"}},
}

// GuessKind guesses the kind of an output from its name, type and shape, and from the operator
// that makes it, which may be empty. It says why.
func GuessKind(output TensorInfo, operator string) (kind Kind, why string) {
	switch {
	case output.DType.Class() != tensor.ClassFloat:
		return guessNamed(output, operator)
	case operator == "Softmax" && len(output.Shape) < 3 && !output.isOneNumber(), operator == "Sigmoid" && output.isOneNumber():
		return KindProbability, "it is the result of " + operator
	case operator == "Sigmoid" && len(output.Shape) == 2 && output.last().Size != 1:
		return KindOther, "it is the result of Sigmoid, so that each number is an answer of its own"
	case operator == "LpNormalization":
		return KindEmbedding, "it is the result of " + operator
	}
	name := strings.ToLower(output.Name)
	for _, g := range guesses {
		at := slices.IndexFunc(g.parts, func(part string) bool { return strings.Contains(name, part) })
		if at < 0 || g.kind.Check(output) != nil {
			continue
		}
		if g.kind == KindScores && len(output.Shape) > 2 {
			return KindTokens, "its name has " + g.parts[at] + ", and it has a row for each position"
		}
		return g.kind, "its name has " + g.parts[at]
	}
	return guessShaped(output)
}

func guessNamed(output TensorInfo, operator string) (Kind, string) {
	switch {
	case operator == "ArgMax" || operator == "TopK":
		return KindClass, "it is the result of " + operator
	case output.DType.Class() == tensor.ClassInteger && strings.Contains(strings.ToLower(output.Name), "label"):
		return KindClass, "its name has label"
	case output.DType == tensor.Bool:
		return KindLabel, "it is of " + string(output.DType)
	}
	return KindClass, "it is of " + string(output.DType)
}

// GuessedRow is why an output is guessed to be scores of which nothing but the shape says so: quantities have it, too.
const GuessedRow = "it has a row of numbers for each case"

func guessShaped(output TensorInfo) (Kind, string) {
	switch rank := len(output.Shape); {
	case rank < 2, rank == 2 && output.last().Size == 1:
		return KindValue, "it has one number for each case"
	case rank == 2 && output.last().Size > 1:
		return KindScores, GuessedRow
	}
	return KindOther, "neither its name nor its shape says more"
}
