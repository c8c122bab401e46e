package cases

import (
	"errors"
	"fmt"
	"path/filepath"

	"mlpromote.dev/mlpromote/pipeline/spec"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/accuracy"
	"mlpromote.dev/mlpromote/validators/tensor"
	"mlpromote.dev/mlpromote/validators/tensor/tensorfile"
)

// rareShare is the share of cases below which the rarer of two labels is rare.
const rareShare = 0.1

// Rare are labels 0 and 1 of which one is rare: a share of right answers says little about it. The zero Rare is none.
type Rare struct {
	Label        int // 0 or 1
	Count, Cases int
}

// Is reports whether one label is rare.
func (r Rare) Is() bool { return r.Cases > 0 }

// rareOf finds it in labels, one for each case.
func rareOf(values []float64) Rare {
	ones := 0
	for _, v := range values {
		if v != 0 && v != 1 {
			return Rare{}
		}
		ones += int(v)
	}
	r := Rare{Label: 1, Count: ones, Cases: len(values)}
	if zeros := len(values) - ones; zeros < ones {
		r.Label, r.Count = 0, zeros
	}
	if r.Count == 0 || float64(r.Count) >= rareShare*float64(r.Cases) {
		return Rare{}
	}
	return r
}

// RareText is the warning of [Rare.Text] about the cases of a folder. It is empty if no label is rare, if accuracy has no limit, and if the labels
// cannot be read.
func RareText(set artifact.CaseSet, dir string, iface validators.Interface, limit *validators.AccuracyLimit) string {
	var files []string
	for _, shard := range set.Shards {
		files = append(files, filepath.Join(dir, filepath.FromSlash(shard.File)))
	}
	rare, err := rareIn(files, set.Labels, iface, limit)
	if err != nil || limit == nil || !rare.Is() {
		return ""
	}
	return rare.Text(set.Labels, limit.Metric)
}

// Rare finds a rare label, if the accuracy is a share of cases: then most of it is the frequent label. Errors: those of reading the files.
func (cs *Set) Rare(iface validators.Interface, limit *validators.AccuracyLimit) (Rare, error) {
	var files []string
	for _, file := range cs.Files {
		files = append(files, file.Path)
	}
	return rareIn(files, cs.Record.Labels, iface, limit)
}

func rareIn(files []string, labels string, iface validators.Interface, limit *validators.AccuracyLimit) (Rare, error) {
	metric, _, ok, err := iface.Accuracy(limit)
	if err != nil || !ok || labels == "" || metric.Name != accuracy.Top1 && metric.Name != accuracy.Exact {
		return Rare{}, nil //nolint:nilerr // a metric that does not fit is refused elsewhere
	}
	var values []float64
	for _, path := range files {
		f, err := tensorfile.Open(path, tensorfile.Limits{})
		if err != nil {
			return Rare{}, TensorError(err)
		}
		t, err := f.Tensor(labels)
		if err = errors.Join(err, f.Close()); err != nil {
			return Rare{}, TensorError(err)
		}
		if len(t.Shape) == 0 || int64(t.Len()) != t.Shape[0] {
			return Rare{}, nil // several labels for each case
		}
		values = append(values, t.Float64s()...)
	}
	return rareOf(values), nil
}

// Limit names the metric that counts the rare label, and its output: auc of scores, else f1_binary of class 1. Nil if no label is rare, and if
// no output fits.
func (r Rare) Limit(outputs []validators.TensorInfo) *validators.AccuracyLimit {
	if !r.Is() {
		return nil
	}
	for _, output := range outputs {
		scored := output.Kind == validators.KindScores || output.Kind == validators.KindProbability
		if each := output.Numbers(); scored && (each == 1 || each == 2) && output.DType.Class() == tensor.ClassFloat {
			return &validators.AccuracyLimit{Metric: accuracy.AUC, Output: output.Name}
		}
	}
	for _, output := range outputs {
		if output.Kind == validators.KindClass && r.Label == 1 {
			return &validators.AccuracyLimit{Metric: accuracy.F1Binary, Output: output.Name}
		}
	}
	return nil
}

// OutputKey writes the key that names the output of a limit, if there are several outputs.
func OutputKey(limit *validators.AccuracyLimit, outputs []validators.TensorInfo) string {
	if limit == nil || len(outputs) == 1 {
		return ""
	}
	return spec.OutputKey(limit.Output)
}

// Labelled returns the labels with the metric that fits them if no limit names one: it counts a rare label. Cases without labels give the zero
// LabelledCases.
func (cs *Set) Labelled(iface validators.Interface) (validators.LabelledCases, error) {
	if cs.Record.Labels == "" {
		return validators.LabelledCases{}, nil
	}
	rare, err := cs.Rare(iface, nil)
	if err != nil {
		return validators.LabelledCases{}, err
	}
	limit := rare.Limit(iface.Outputs)
	metric, of, ok, err := iface.Accuracy(limit)
	if err != nil || !ok {
		return validators.LabelledCases{}, err
	}
	if limit == nil && of.Kind == validators.KindProbability && !of.Ranks() {
		limit = &validators.AccuracyLimit{Metric: accuracy.AUC, Output: of.Name}
		if metric, _, _, err = iface.Accuracy(limit); err != nil {
			return validators.LabelledCases{}, err
		}
	}
	other := *cs
	other.right = nil
	err = other.FindRight(iface, limit)
	return validators.LabelledCases{Labels: cs.Record.Labels, Metric: metric, Output: OutputKey(limit, iface.Outputs), Sample: other.Sample(iface)}, err
}

// Text proposes metrics that count the rare label. metric is the one that does not.
func (r Rare) Text(labels, metric string) string {
	return fmt.Sprintf("labels %q: %d is in %d of %s, so an engine that never answers it has %s of %s: take metric f1_binary or auc (docs/how-to/rare.md)",
		labels, r.Label, r.Count, registry.Count(r.Cases, "case"), validators.ShareText(1-float64(r.Count)/float64(r.Cases)), metric)
}
