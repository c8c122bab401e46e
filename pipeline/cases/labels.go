package cases

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"mlpromote.dev/mlpromote/pipeline/spec"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/accuracy"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// errNoTensor: a shard has no tensor of the name.
var errNoTensor = errors.New("no tensor")

// FindLabels makes the set labelled: by the tensor that the spec names, or by one
// called "label" or "labels" that is not an input, and that can be labels in every shard: labels
// that the metric of the limit wants, or without a limit the outputs' metric.
func (cs *Set) FindLabels(named string, iface validators.Interface, limit *validators.AccuracyLimit) error {
	metric, scored, ok, err := iface.Accuracy(limit)
	if err != nil {
		return err
	}
	if !ok { // nothing is measured by labels, but a spec may name some
		name, _ := iface.ScoredOutput(true)
		scored, _ = iface.Output(name)
	}
	wanted := labelled{metric, scored}
	candidates := labelNames
	if named != "" {
		candidates = []string{named}
	}
	for _, name := range candidates {
		if slices.ContainsFunc(iface.Inputs, func(p validators.TensorInfo) bool { return p.Name == name }) {
			continue
		}
		if file, ok := cs.texts[name]; ok {
			return registry.WithHint(registry.Errorf(registry.CodeInvalid, "%s: labels %q are text: want the numbers of the classes", file, name),
				"mlpromote init --cases numbers them where the model names its classes; else number the classes from 0, in the order of the model's output")
		}
		path, err := cs.checkLabels(name, wanted)
		switch {
		case err == nil:
			cs.Record.Labels = name
			return nil
		case errors.Is(err, errNoTensor) && named != "":
			return registry.Errorf(registry.CodeInvalid, "%s: %w %q, which cases.labels names", path, errNoTensor, named)
		case named != "":
			return registry.Errorf(registry.CodeInvalid, "%s: tensor %q, which cases.labels names: %w", path, named, err)
		}
	}
	if named != "" {
		return registry.Errorf(registry.CodeInvalid, "cases.labels: %q is an input of the model", named)
	}
	return nil
}

// OptionalLabels finds labels as [Set.FindLabels] does, in data that need not have any: empty if there is no such tensor. A
// tensor that the spec names and that cannot be labels is an error.
func (cs *Set) OptionalLabels(named string, iface validators.Interface, limit *validators.AccuracyLimit) (string, error) {
	other := *cs
	err := other.FindLabels(named, iface, limit)
	if errors.Is(err, errNoTensor) {
		return "", nil
	}
	return other.Record.Labels, err
}

// checkLabels checks that every shard has labels of that name; if one has not, it says which.
func (cs *Set) checkLabels(name string, wanted labelled) (path string, err error) {
	for i, file := range cs.Files {
		f, err := openShard(file)
		if err != nil {
			return cs.from[i], err
		}
		err = areLabels(f, name, cs.Record.Shards[i].Count, wanted)
		if err = errors.Join(err, f.Close()); err != nil {
			return cs.from[i], err
		}
	}
	return "", nil
}

// FindRight computes the figures of a reference model and an engine that give the labels, without those of copies: see
// [Set.Sample]. Nothing is known if labels do not determine an output.
func (cs *Set) FindRight(iface validators.Interface, limit *validators.AccuracyLimit) error {
	metric, _, ok, err := iface.Accuracy(limit)
	if err != nil {
		return err
	}
	if !ok || metric.Rate || metric.Smooth || metric.Needs == accuracy.NeedsProgram {
		return nil
	}
	counter, number := accuracy.NewCounter(metric, false, 0), 0
	for _, file := range cs.Files {
		f, err := openShard(file)
		if err != nil {
			return err
		}
		labels, err := f.Tensor(cs.Record.Labels)
		if err = errors.Join(err, f.Close()); err != nil {
			return TensorError(err)
		}
		for row := range labels.Shape[0] {
			if number++; cs.Copies[number-1] {
				continue
			}
			of, err := labels.Rows(row, row+1)
			if err != nil {
				return TensorError(err)
			}
			if counter.AddRight(of) != nil {
				return nil //nolint:nilerr // the labels are checked where outputs are at hand
			}
		}
	}
	cs.right = counter
	return nil
}

// Sample has the facts about the cases that limits depend on.
func (cs *Set) Sample(iface validators.Interface) validators.Sample {
	s := validators.Sample{Cases: cs.Distinct(), Floats: hasFloats(iface)}
	if cs.right != nil {
		s.Right = cs.right.Figures()
	}
	return s
}

func hasFloats(iface validators.Interface) bool {
	return slices.ContainsFunc(iface.Outputs, func(o validators.TensorInfo) bool { return o.DType.Class() == tensor.ClassFloat })
}

// labelled is what labels are for: the zero metric takes classes.
type labelled struct {
	metric accuracy.Metric
	output validators.TensorInfo
}

// areLabels checks that a tensor holds what a metric compares an output with, for each of count cases.
func areLabels(f shard, name string, count int, wanted labelled) error {
	info, ok := f.Info(name)
	if !ok {
		return errNoTensor
	}
	if wanted.metric.Needs == accuracy.NeedsBoxes {
		return checkBoxes(f, name, count)
	}
	if wanted.metric.Needs == accuracy.NeedsProgram {
		if len(info.Shape) == 0 || info.Shape[0] != int64(count) {
			return registry.Errorf(registry.CodeInvalid, "shape is %v: want %d labels first, one for each case", info.Shape, count)
		}
		return nil
	}
	values := wanted.metric.Needs == accuracy.NeedsMarks || wanted.metric.Needs == accuracy.NeedsValues || wanted.metric.Needs == accuracy.NeedsOne
	yes := info.DType == tensor.Bool && (wanted.output.DType == tensor.Bool || wanted.metric.Needs == accuracy.NeedsTwo)
	if !values && !yes && info.DType.Class() != tensor.ClassInteger {
		return registry.Errorf(registry.CodeInvalid, "dtype is %s: want integers, the numbers of classes%s", info.DType, orQuantities(info, wanted.output))
	}
	if len(info.Shape) == 0 || info.Shape[0] != int64(count) {
		return registry.Errorf(registry.CodeInvalid,
			"shape is %v: want %d labels first, one for each case", info.Shape, count)
	}
	labels, err := f.Tensor(name)
	if err != nil {
		return TensorError(err)
	}
	if values {
		return checkValues(labels, wanted)
	}
	return checkClasses(labels, wanted)
}

// orQuantities says what to write where labels are real numbers and the output is taken for scores, perhaps by a guess.
func orQuantities(labels tensor.Info, output validators.TensorInfo) string {
	if labels.DType.Class() != tensor.ClassFloat || output.DType.Class() != tensor.ClassFloat || output.Kind == validators.KindValue || !output.Ranks() && output.Kind == validators.KindProbability {
		return ""
	}
	return fmt.Sprintf("; if output %q has quantities and no scores, write outputs: {%s: {kind: value}}", output.Name, spec.Quoted(output.Name))
}

// checkBoxes checks that labels are boxes with their classes, any number for each case.
func checkBoxes(f shard, name string, count int) error {
	info, _ := f.Info(name)
	if len(info.Shape) < 3 || info.Shape[0] != int64(count) || info.Shape[len(info.Shape)-1] != 5 || info.DType == tensor.Bool {
		return registry.Errorf(registry.CodeInvalid,
			"dtype is %s and shape %v: want numbers [%d, boxes, 5] of x1, y1, x2, y2, class, with class -1 if a case has fewer boxes",
			info.DType, info.Shape, count)
	}
	labels, err := f.Tensor(name)
	if err != nil {
		return TensorError(err)
	}
	return accuracy.CheckBoxes(labels)
}

// checkValues checks that labels are numbers, as many for each case as the output has.
func checkValues(labels tensor.Tensor, wanted labelled) error {
	marks := wanted.metric.Needs == accuracy.NeedsMarks
	cases := max(labels.Shape[0], 1)
	each, want := int64(labels.Len())/cases, int64(1)
	for _, d := range wanted.output.Shape[min(1, len(wanted.output.Shape)):] {
		if d.Symbol != "" {
			want = each // not known before the model is run
			break
		}
		want *= d.Size
	}
	if each != want {
		return registry.Errorf(registry.CodeInvalid, "shape is %v: want %d for each case, as output %s of shape %v has; other labels go out of cases.labels",
			labels.Shape, want, wanted.output.Name, wanted.output.Shape)
	}
	for i, v := range labels.Float64s() {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return registry.Errorf(registry.CodeInvalid, "label %v at %d: want a finite number", v, i)
		}
		if marks && v != 0 && v != 1 {
			return registry.Errorf(registry.CodeInvalid, "label %v at %d: %s wants 0 or 1", v, i, wanted.metric.Name)
		}
	}
	return nil
}

// checkClasses checks that labels are numbers of classes. Where a case has several, a negative one says that no answer
// counts, but not all are.
func checkClasses(labels tensor.Tensor, wanted labelled) error {
	var classes int64 // 0: not known before the model is run
	named, two := wanted.output.Kind.Names(), wanted.metric.Needs == accuracy.NeedsTwo
	switch {
	case two:
		classes = 2
	case !named && wanted.output.DType.Class() == tensor.ClassFloat:
		classes = scoredClasses(wanted.output.Shape, labels.Shape)
	}
	each := labels.Len() / int(max(labels.Shape[0], 1))
	scores := !named && (wanted.output.DType == "" || wanted.output.DType.Class() == tensor.ClassFloat) // "": an import, where no output is known
	void := each > 1 && !two && (scores || wanted.metric.Needs == accuracy.NeedsPlaces)
	counts := false // an answer of the case
	for i, label := range labels.Float64s() {
		if label < 0 && !void || classes > 0 && label >= float64(classes) {
			return registry.Errorf(registry.CodeInvalid,
				"label %v at %d: want the number of a class of output %s, %s", label, i, wanted.output.Name, classRange(classes, void))
		}
		counts = counts && i%each != 0 || label >= 0
		if i%each == each-1 && !counts {
			return registry.Errorf(registry.CodeInvalid, "all labels of case %d are negative, so no answer counts: leave the case out", i/each)
		}
	}
	return nil
}

// classRange says which labels there are of so many classes, or of 0 for a number that is not known.
func classRange(classes int64, void bool) string {
	text := "from 0 on"
	if classes > 0 {
		text = fmt.Sprintf("from 0 to %d", classes-1)
	}
	if void {
		text += ", or a negative number if no answer counts"
	}
	return text
}

// scoredClasses is how many classes scores of a shape have; 0 if that is not known. They are the last dimension, or the
// second one where labels have the others alone: see [accuracy.Counter.Add].
func scoredClasses(output []validators.Dim, labels []int64) int64 {
	last := len(output) - 1
	if last < 0 {
		return 0
	}
	if last < 2 || likePlaces(output[1:last], labels) || !likePlaces(output[2:], labels) {
		return output[last].Size
	}
	return output[1].Size
}

// likePlaces reports whether labels, with cases in front, can have these dimensions, where dimensions of 1 do not count.
func likePlaces(dims []validators.Dim, labels []int64) bool {
	places := slices.DeleteFunc(slices.Clone(labels[1:]), func(n int64) bool { return n == 1 })
	dims = slices.DeleteFunc(slices.Clone(dims), func(d validators.Dim) bool { return d.Size == 1 })
	return slices.EqualFunc(dims, places, func(d validators.Dim, n int64) bool { return d.Symbol != "" || d.Size == n })
}
