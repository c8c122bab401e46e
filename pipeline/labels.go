package pipeline

import (
	"errors"
	"math"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/accuracy"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// checkLabels compares the golden outputs with the labels, so that labels which do not fit are
// refused before anything is signed, and not taken for a fault of an engine. Errors: CodeInvalid.
func (m maker) checkLabels(golden goldenSet) error {
	metric, output, ok, err := m.plan.Interface.Accuracy(m.plan.Limits.Accuracy)
	labels := m.inputs.Cases.Record.Labels
	if err != nil || !ok || labels == "" || metric.Needs == accuracy.NeedsProgram {
		return err // see tryProgram
	}
	counter := accuracy.NewCounter(metric, output.Kind == validators.KindProbability, 0)
	for i, file := range golden.files {
		if err := addGolden(counter, file.Path, output.Name, m.plan.Limits.Accuracy.DetectedBy(), m.inputs.Cases.Files[i].Path, labels); err != nil {
			return m.inputs.Cases.NamedIn(registry.Errorf(registry.CodeInvalid,
				"labels %q of %s: %s of output %q: %w", labels, m.inputs.Cases.Files[i].Name, metric.Name, output.Name, err))
		}
	}
	reference := float64(counter.Result().Reference)
	if math.IsNaN(reference) || math.IsInf(reference, 0) {
		return registry.WithHint(registry.Errorf(registry.CodeInvalid,
			"%s of the reference model on the labels %q is %v: no engine can be compared with it", metric.Name, labels, reference),
			"auc wants cases of both classes, f1_binary labels of class 1, r2 labels that differ, perplexity no probability of 0")
	}
	if reference == 0 && !metric.Loss && comparesReference(m.plan.Limits.Accuracy) {
		return registry.WithHint(registry.Errorf(registry.CodeInvalid,
			"%s of the reference model on the labels %q is 0: no engine can be worse, so that limits on what it loses prove nothing", metric.Name, labels),
			"look whether the labels are those of these cases, and number the classes as the model does")
	}
	return nil
}

// comparesReference reports whether a limit is on what an engine loses.
func comparesReference(l *validators.AccuracyLimit) bool {
	return l != nil && (l.Drop != nil || l.Relative != nil || l.Regression != nil || l.Slices != nil && l.Slices.Drop != nil)
}

// addGolden adds a shard of golden outputs, with itself as the engine's.
func addGolden(counter *accuracy.Counter, outputs, output string, by *accuracy.Detections, cases, labels string) (err error) {
	golden, err := tensor.Open(outputs, tensor.Limits{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, golden.Close()) }()
	from, err := tensor.Open(cases, tensor.Limits{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	of, err := by.Read(golden, output)
	if err != nil {
		return err
	}
	want, err := from.Tensor(labels)
	if err != nil {
		return err
	}
	return counter.Add(of, of, want)
}
