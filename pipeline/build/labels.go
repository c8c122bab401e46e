package build

import (
	"errors"
	"fmt"
	"math"

	"mlpromote.dev/mlpromote/pipeline/goldenset"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/accuracy"
	"mlpromote.dev/mlpromote/validators/tensor/tensorfile"
)

// checkLabels compares the golden outputs with the labels, so that labels which do not fit are
// refused before anything is signed, and not taken for a fault of an engine. It returns a warning about a reference model that knows
// no more than the most frequent label. Provenance keeps it, so that later commands can repeat it. Errors: CodeInvalid.
func checkLabels(m Maker, golden goldenset.Set) ([]string, error) {
	metric, output, ok, err := m.Plan.Interface.Accuracy(m.Plan.Limits.Accuracy)
	labels := m.Inputs.Cases.Record.Labels
	if err != nil || !ok || labels == "" || metric.Needs == accuracy.NeedsProgram {
		return nil, err // see tryProgram
	}
	counter := accuracy.NewCounter(metric, output.Kind == validators.KindProbability, 0)
	for i, file := range golden.Files {
		if err := addOutputs(counter, file.Path, file.Path, output.Name, m.Plan.Limits.Accuracy.DetectedBy(), m.Inputs.Cases.Files[i].Path, labels); err != nil {
			shard := m.Inputs.Cases.Files[i].Name
			return nil, m.Inputs.Cases.InShard(registry.Errorf(registry.CodeInvalid,
				"labels %q of %s: %s of output %q: %w", labels, shard, metric.Name, output.Name, err), shard)
		}
	}
	reference := float64(counter.Result().Reference)
	if math.IsNaN(reference) || math.IsInf(reference, 0) {
		return nil, registry.WithHint(registry.Errorf(registry.CodeInvalid,
			"%s of the reference model on the labels %q is %v: no engine can be compared with it", metric.Name, labels, reference),
			"auc wants cases of both classes, f1_binary labels of class 1, r2 labels that differ, perplexity no probability of 0")
	}
	if reference == 0 && !metric.Loss && comparesReference(m.Plan.Limits.Accuracy) {
		return nil, registry.WithHint(registry.Errorf(registry.CodeInvalid,
			"%s of the reference model on the labels %q is 0: no engine can be worse, so that limits on what it loses prove nothing", metric.Name, labels),
			"look whether the labels are those of these cases, and number the classes as the model does")
	}
	if (metric.Name == accuracy.AUC || metric.Name == accuracy.AUCMacro) && reference < guessedAUC {
		return []string{fmt.Sprintf("labels %q: the reference model has an %s of %s, which is worse than guessing: look whether the labels are those of these cases, "+
			"and 1 where the model's values are large", labels, metric.Name, validators.ShareText(reference))}, nil
	}
	if metric.Name == "r2" && reference < 0 {
		return []string{fmt.Sprintf("labels %q: the reference model has an r2 of %.3g, which is worse than the mean of the labels: look whether the labels are those of these cases, "+
			"in the unit of the model", labels, reference)}, nil
	}
	if constant := counter.MostFrequent(); reference <= constant {
		return []string{fmt.Sprintf("labels %q: the reference model is right in %s of the cases, and the most frequent label alone would be in %s: "+
			"look whether the labels are those of these cases, in the order of the model's classes", labels, validators.ShareText(reference), validators.ShareText(constant))}, nil
	}
	return nil, nil
}

// guessedAUC is the AUC of a guess.
const guessedAUC = 0.5

// comparesReference reports whether a limit is on what an engine loses.
func comparesReference(l *validators.AccuracyLimit) bool {
	return l != nil && (l.Drop != nil || l.Relative != nil || l.Regression != nil || l.Slices != nil && l.Slices.Drop != nil)
}

// addOutputs adds a shard of outputs of the reference model, and those of an engine for the same cases.
func addOutputs(counter *accuracy.Counter, reference, engine, output string, by *accuracy.Detections, cases, labels string) (err error) {
	var files [3]*tensorfile.File
	for i, path := range []string{reference, engine, cases} {
		if files[i], err = tensorfile.Open(path, tensorfile.Limits{}); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, files[i].Close()) }()
	}
	want, err := by.Read(files[0], output)
	if err != nil {
		return err
	}
	got, err := by.Read(files[1], output)
	if err != nil {
		return err
	}
	right, err := files[2].Tensor(labels)
	if err != nil {
		return err
	}
	return counter.Add(want, got, right)
}
