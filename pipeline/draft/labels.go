package draft

import (
	"fmt"
	"math"
	"slices"

	"mlpromote.dev/mlpromote/pipeline/cases"
	"mlpromote.dev/mlpromote/pipeline/spec"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/accuracy"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// kindsByLabels corrects guesses of scores by the labels: classes are whole numbers, one for each row of scores.
func kindsByLabels(kinds []spec.DraftedKind, outputs []validators.TensorInfo, labels cases.LabelFacts) []spec.DraftedKind {
	kinds = slices.Clone(kinds)
	for i, k := range kinds {
		output := outputs[i]
		fits := output.DType.Class() == tensor.ClassFloat && labels.Each > 0 && numbersOf(output) == labels.Each
		several := labels.Each > 1 && !labels.Binary // else each row may have a 1 for its class
		if !k.Kind.Ranks() || !fits || !labels.Real && !(several && k.Why == validators.GuessedRow) {
			continue
		}
		why := "it has " + registry.Count(int(labels.Each), "number") + " for each case, as the labels"
		if labels.Real {
			why += ", which are not whole"
		}
		kinds[i].Guess = validators.Guess{Kind: validators.KindValue, Why: why}
	}
	return kinds
}

// numbersOf is how many numbers an output has for each case; 0 where its shape does not say.
func numbersOf(output validators.TensorInfo) int64 {
	each := int64(1)
	for _, d := range output.Shape[min(1, len(output.Shape)):] {
		each *= d.Size // 0 for a symbol
	}
	return each
}

// proposedAccuracy is a limit on accuracy by the kinds of outputs and the labels; empty where no metric is known to fit.
func proposedAccuracy(kinds []spec.DraftedKind, outputs []validators.TensorInfo, imported cases.Imported) string {
	labels, values := imported.Facts, 0
	for i, k := range kinds {
		each := numbersOf(outputs[i])
		several := severalAnswers(k.Kind, labels, outputs[i])
		switch {
		case several != "":
			return proposedSeveral(several, outputIfNotFirst(k, i), imported.Count)
		case k.Kind.Ranks() || k.Kind == validators.KindClass:
			if !labels.Real {
				return proposedTop1(imported.Count)
			}
		case k.Kind != validators.KindValue:
		case labels.Each != 0 && each != 0 && labels.Each != each:
			values++ // another output has the numbers of the labels
		case labels.Binary && each == 1 && values == 0:
			return "{metric: auc, drop: {max: 5%}}"
		default:
			return "{metric: rmse, " + outputIfNotFirst(k, values) + "drop: {max: 5%}}"
		}
	}
	return ""
}

// proposedSeveral is a limit on what is lost of a figure to which a rare class or label can contribute several times what a case does
// on average, so that so many cases mostly prove it. It is empty for few cases.
func proposedSeveral(metric, output string, count int) string {
	const share = 5
	limits := validators.Limits{V: validators.LimitsVersion, Confidence: validators.DefaultConfidence}
	proof := limits.Proof(count)
	if proof == nil || share*proof.Drop > 0.2 {
		return ""
	}
	return fmt.Sprintf("{metric: %s, %sdrop: {max: %.0f%%}}", metric, output, max(5, math.Ceil(100*share*proof.Drop)))
}

// severalAnswers is the metric of an output with several answers for each case, as many as labels: classes of places, or yes and no; else empty.
func severalAnswers(kind validators.Kind, labels cases.LabelFacts, output validators.TensorInfo) string {
	switch {
	case kind == validators.KindMask && classifyPlaces(labels, output),
		kind == validators.KindClass && len(output.Shape) > 3 && !labels.Real && labels.Each > 1 && labels.Each == numbersOf(output):
		return accuracy.MeanIoU
	case labels.Binary && labels.Each > 1 && labels.Each == numbersOf(output) && (kind == validators.KindValue || kind == validators.KindOther):
		return accuracy.AUCMacro
	}
	return ""
}

// classifyPlaces reports whether labels may be the classes of places that an output has scores of: [n, classes, ...] or [n, ..., classes].
func classifyPlaces(labels cases.LabelFacts, output validators.TensorInfo) bool {
	each := numbersOf(output)
	if labels.Real || labels.Each < 2 || each == 0 || each%labels.Each != 0 || len(output.Shape) < 3 {
		return false
	}
	classes := each / labels.Each
	return classes > 1 && (output.Shape[1].Size == classes || output.Shape[len(output.Shape)-1].Size == classes)
}

// outputIfNotFirst names an output that a metric of values would not take by itself.
func outputIfNotFirst(k spec.DraftedKind, before int) string {
	if before == 0 {
		return ""
	}
	return "output: " + spec.Quoted(k.Output) + ", "
}

// proposedTop1 is a limit on what is lost of the share of right answers, which so many cases can prove twice over.
func proposedTop1(count int) string {
	limits := validators.Limits{V: validators.LimitsVersion, Confidence: validators.DefaultConfidence}
	proof := limits.Proof(count)
	if proof == nil || proof.Drop > 0.1 { // too few to say much
		return ""
	}
	return fmt.Sprintf("{metric: %s, drop: {max: %.0f%%}}", validators.MetricTop1, math.Ceil(200*proof.Drop))
}
