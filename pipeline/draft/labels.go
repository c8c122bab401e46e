package draft

import (
	"fmt"
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
		fits := output.DType.Class() == tensor.ClassFloat && labels.Each > 0 && output.Numbers() == labels.Each
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

// proposedAccuracy returns the limit on accuracy that the kinds of outputs and the labels suggest, as YAML. Without one, why is
// what to do; both are empty if no metric is known to fit.
func proposedAccuracy(kinds []spec.DraftedKind, outputs []validators.TensorInfo, imported cases.Imported) (limit, why string) {
	metric, output := metricFor(kinds, outputs, imported.Facts)
	if metric == "" {
		return "", ""
	}
	m, err := accuracy.Find(metric)
	if err != nil {
		return "", ""
	}
	sample := validators.Sample{Cases: imported.Count, Right: imported.Right(m)}
	limit, need := sample.ProposeDrop(m, output, validators.DefaultConfidence)
	if need > 0 {
		return "", fmt.Sprintf("%s prove too little for a limit on %s; mlpromote plan shows how many it takes", registry.Count(imported.Count, "case"), metric)
	}
	return limit, ""
}

// metricFor returns the metric that fits outputs of these kinds and labels, and the key that names its output if it is not the first that
// fits, as YAML.
func metricFor(kinds []spec.DraftedKind, outputs []validators.TensorInfo, labels cases.LabelFacts) (metric, output string) {
	known := slices.Clone(outputs)
	for i, k := range kinds {
		known[i].Kind = k.Kind
	}
	if limit := labels.Rare.Limit(known); limit != nil {
		return limit.Metric, cases.OutputKey(limit, outputs)
	}
	values, classes := 0, 0 // outputs before that do not fit
	for i, k := range kinds {
		each, output := outputs[i].Numbers(), outputs[i]
		output.Kind = k.Kind
		several := severalAnswers(k.Kind, labels, outputs[i])
		switch {
		case several != "":
			return several, outputIfNotFirst(k, i)
		case output.Ranks() || k.Kind == validators.KindClass:
			if labels.Real || !classesOf(output, labels) {
				classes++
				continue
			}
			return validators.MetricTop1, outputIfNotFirst(k, classes)
		case k.Kind != validators.KindValue && k.Kind != validators.KindProbability:
		case labels.Each != 0 && each != 0 && labels.Each != each:
			values++ // another output has the numbers of the labels
		case labels.Binary && each == 1 && values == 0:
			return accuracy.AUC, ""
		case labels.Skewed: // the squares of errors are those of the largest values
			return accuracy.MAPE, outputIfNotFirst(k, values)
		default:
			return accuracy.RMSE, outputIfNotFirst(k, values)
		}
	}
	return "", ""
}

// severalAnswers is the metric of an output with several answers for each case, as many as labels: classes of places, or yes and no; else empty.
func severalAnswers(kind validators.Kind, labels cases.LabelFacts, output validators.TensorInfo) string {
	switch {
	case kind == validators.KindMask && classifyPlaces(labels, output),
		kind == validators.KindClass && len(output.Shape) > 3 && !labels.Real && labels.Each > 1 && labels.Each == output.Numbers():
		return accuracy.MeanIoU
	case labels.Binary && labels.Each > 1 && labels.Each == output.Numbers() && (kind == validators.KindValue || kind == validators.KindOther):
		return accuracy.AUCMacro
	}
	return ""
}

// classesOf reports whether labels can be the classes that an output ranks or names: one for each row, and below the number of classes.
func classesOf(output validators.TensorInfo, labels cases.LabelFacts) bool {
	rows, known := output.Numbers(), output.Numbers() != 0
	if output.Ranks() && len(output.Shape) > 0 {
		width := output.Shape[len(output.Shape)-1].Size
		if width != 0 && labels.Largest >= float64(width) {
			return false
		}
		if known {
			rows /= width
		}
	}
	if !known && len(output.Shape) > 2 { // each case has a row for each position of an open dimension
		return labels.Each != 1
	}
	return !known || rows == labels.Each
}

// classifyPlaces reports whether labels may be the classes of places that an output has scores of: [n, classes, ...] or [n, ..., classes].
func classifyPlaces(labels cases.LabelFacts, output validators.TensorInfo) bool {
	each := output.Numbers()
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
	return spec.OutputKey(k.Output)
}
