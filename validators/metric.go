package validators

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/policy"
	"mlpromote.dev/mlpromote/validators/accuracy"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// Accuracy returns the metric that outputs are compared with labels by, and the output: those of the limit,
// and what the limit leaves open is the first output that fits. Without a limit it is top1 of the
// first output with an answer for each case, or else the mean error of the first value. ok is false where
// there is none. Errors: CodeInvalid for a limit whose metric no output fits, or not the one that it names.
func (i Interface) Accuracy(limit *AccuracyLimit) (m accuracy.Metric, output TensorInfo, ok bool, err error) {
	if limit == nil {
		return i.unasked()
	}
	if m, err = accuracy.Find(limit.Metric); err != nil {
		return m, TensorInfo{}, false, err
	}
	if m.Needs == accuracy.NeedsProgram { // it reads all outputs
		return m, i.Outputs[0], true, nil
	}
	if limit.Detections != nil {
		output, err = i.detections(*limit.Detections)
		return m, output, err == nil, err
	}
	if limit.Output != "" {
		if output, ok = i.Output(limit.Output); !ok {
			return m, output, false, registry.Errorf(registry.CodeInvalid,
				"limits.accuracy.output: the model has no output %q: there are %s", limit.Output, list(names(i.Outputs)))
		}
		return m, output, true, fits(m, output)
	}
	for n, output := range i.Outputs {
		why := fits(m, output)
		if why == nil {
			return m, output, true, nil
		}
		if n == 0 {
			err = why
		}
	}
	return m, TensorInfo{}, false, err
}

// unasked is what is measured where no limit asks.
func (i Interface) unasked() (m accuracy.Metric, output TensorInfo, ok bool, err error) {
	if name, ok := i.ScoredOutput(false); ok {
		m, err = accuracy.Find(accuracy.Top1)
		output, _ = i.Output(name)
		return m, output, err == nil, err
	}
	for _, output := range i.Outputs {
		if output.Kind == KindValue || output.isYesOrNo() {
			m, err = accuracy.Find(accuracy.MAE)
			return m, output, err == nil, err
		}
	}
	return m, TensorInfo{}, false, nil
}

// Detections are the outputs that a metric of boxes is computed of.
type Detections = accuracy.Detections

// The names of the metrics that a program of the user computes.
const (
	MetricProgram      = accuracy.Program
	MetricProgramLower = accuracy.ProgramLower
)

// Metrics lists the names of all metrics of accuracy.
func Metrics() []string { return accuracy.Metrics() }

// LessIsBetter reports whether a metric is an error, which has no largest value.
func LessIsBetter(metric string) bool {
	m, err := accuracy.Find(metric)
	return err == nil && m.Loss
}

// MetricsFor lists the metrics that fit an output, which has a kind.
func MetricsFor(output TensorInfo) []string {
	var names []string
	for _, name := range accuracy.Metrics() {
		if m, err := accuracy.Find(name); err == nil && needs(m, output) == "" {
			names = append(names, name)
		}
	}
	return names
}

// fits checks that an output has what a metric needs. Errors: CodeInvalid, which lists the metrics
// that do fit.
func fits(m accuracy.Metric, output TensorInfo) error {
	lacks := needs(m, output)
	if lacks == "" {
		return nil
	}
	return registry.Errorf(registry.CodeInvalid,
		"limits.accuracy.metric: %s wants %s, and output %q of kind %s has dtype %s and shape %v: want one of %s, or say the kind in outputs.%s.kind",
		m.Name, lacks, output.Name, output.Kind, output.DType, output.Shape, strings.Join(MetricsFor(output), ", "), output.Name)
}

// needs says what a metric wants of an output that it lacks; empty for nothing.
func needs(m accuracy.Metric, output TensorInfo) string {
	whole := output.DType.Class() != tensor.ClassFloat
	ranks := output.Ranks() && !whole || output.masksClasses()
	values := output.ofValues()
	one := values && output.mayBeOne()
	wants, has := "", true
	switch m.Needs {
	case accuracy.NeedsProgram:
		return "a program"
	case accuracy.NeedsScores, accuracy.NeedsAnswers, accuracy.NeedsSeveral, accuracy.NeedsPlaces:
		wants, has = needsClasses(m, output, ranks)
	case accuracy.NeedsTwo:
		wants, has = "one number for each case, or scores of two classes", one && !whole || ranks && output.ofTwo()
	case accuracy.NeedsMarks:
		wants, has = "several numbers for each case, each an answer of its own and no score among others", values && !whole && output.hasSeveral()
	case accuracy.NeedsValues:
		wants, has = "numbers that are no scores of classes", values
	case accuracy.NeedsOne:
		wants, has = "one number for each case, which is no score of a class", one
	case accuracy.NeedsBoxes:
		wants, has = "detections [n, 6] of x1, y1, x2, y2, score, class, or three outputs that limits.accuracy.detections names", values &&
			output.ofBoxes(6)
	}
	if has {
		return ""
	}
	return wants
}

// needsClasses is needs for a metric of classes, of an output that ranks them or not.
func needsClasses(m accuracy.Metric, output TensorInfo, ranks bool) (wants string, has bool) {
	switch m.Needs {
	case accuracy.NeedsAnswers:
		return "scores of classes, one probability of yes, or answers that are whole numbers", ranks || output.isYesOrNo() || output.DType.Class() != tensor.ClassFloat && output.maybeAnswers()
	case accuracy.NeedsSeveral:
		return "several answers for each case, such as scores of the token at each position", output.Kind != KindMask && output.answersSeveral(ranks)
	case accuracy.NeedsPlaces:
		return "scores of classes at several places of each case, or class numbers", output.answersSeveral(ranks)
	}
	if k := m.Top(); k > 0 {
		return fmt.Sprintf("scores of more than %d classes", k), ranks && output.moreThan(k)
	}
	return "scores of classes", ranks
}

// maybeAnswers reports whether whole numbers of the output may be answers.
func (t TensorInfo) maybeAnswers() bool { return t.Kind != KindValue && t.Kind != KindEmbedding }

// answersSeveral reports whether each case may have several answers, of an output that ranks classes or not.
func (t TensorInfo) answersSeveral(ranks bool) bool {
	of := t.Shape
	switch {
	case t.masksClasses():
		return true
	case ranks:
		of = of[:len(of)-1]
	case t.Kind != KindClass && t.Kind != KindTokens && (t.Kind != KindMask || t.DType.Class() == tensor.ClassFloat):
		return false
	}
	return len(of) > 1 && slices.ContainsFunc(of[1:], func(d Dim) bool { return d.Size != 1 })
}

// masksClasses reports whether an output may have scores of classes at each place: [n, classes, ...] or [n, ..., classes].
func (t TensorInfo) masksClasses() bool {
	return t.Kind == KindMask && t.DType.Class() == tensor.ClassFloat && len(t.Shape) > 2
}

// ofValues reports whether an output has numbers that are no scores, classes or labels.
func (t TensorInfo) ofValues() bool {
	return !t.Ranks() && !t.Kind.Names() && t.DType != tensor.Bool
}

// ofBoxes reports whether an output may have rows of so many numbers, each about a box.
func (t TensorInfo) ofBoxes(width int64) bool {
	return len(t.Shape) > 1 && t.DType.Class() == tensor.ClassFloat && (t.last().Size == width || t.last().Symbol != "" && t.Kind == KindBoxes)
}

// detections returns the output with the boxes, of which others have scores and classes. Errors:
// CodeInvalid.
func (i Interface) detections(of accuracy.Detections) (boxes TensorInfo, err error) {
	boxes, _ = i.Output(of.Boxes)
	rows := func(t TensorInfo) bool { return t.DType != tensor.Bool && len(t.Shape) == len(boxes.Shape)-1 }
	for _, part := range []struct {
		key, name string
		fits      func(TensorInfo) bool
		wants     string
	}{
		{"boxes", of.Boxes, func(t TensorInfo) bool { return t.ofBoxes(4) }, "floats [..., n, 4] of x1, y1, x2, y2"},
		{"scores", of.Scores, rows, "numbers [..., n]"},
		{"classes", of.Classes, rows, "numbers [..., n]"},
	} {
		switch output, ok := i.Output(part.name); {
		case !ok:
			return boxes, registry.Errorf(registry.CodeInvalid,
				"limits.accuracy.detections.%s: the model has no output %q: there are %s", part.key, part.name, list(names(i.Outputs)))
		case !part.fits(output):
			return boxes, registry.Errorf(registry.CodeInvalid,
				"limits.accuracy.detections.%s: output %q has dtype %s and shape %v: want %s", part.key, part.name, output.DType, output.Shape, part.wants)
		}
	}
	return boxes, nil
}

// moreThan reports whether a case may be the scores of more than k classes. Of k classes, all are among
// the k largest.
func (t TensorInfo) moreThan(k int) bool {
	more := func(d Dim) bool { return d.Symbol != "" || d.Size > int64(k) }
	return more(t.last()) || t.masksClasses() && more(t.Shape[1])
}

// ofTwo reports whether a case may be the scores of two classes.
func (t TensorInfo) ofTwo() bool {
	return len(t.Shape) < 3 && (t.last().Size == 2 || t.last().Symbol != "")
}

// hasSeveral reports whether each case has several values, or may have.
func (t TensorInfo) hasSeveral() bool {
	each, known := t.perCase()
	return each > 1 || !known
}

// mayBeOne reports whether a case may have a single value.
func (t TensorInfo) mayBeOne() bool {
	each, known := t.perCase()
	return each == 1 || !known
}

// perCase returns how many values a case has, if no dimension behind the first is open.
func (t TensorInfo) perCase() (values int64, known bool) {
	values = 1
	for _, d := range t.Shape[min(1, len(t.Shape)):] {
		if d.Symbol != "" {
			return 0, false
		}
		values *= d.Size
	}
	return values, true
}

// ByProgram reports whether a program of the user computes the metric.
func (a *AccuracyLimit) ByProgram() bool {
	return a != nil && (a.Metric == accuracy.Program || a.Metric == accuracy.ProgramLower)
}

// validateProgram checks that there is a program where the metric is one, and only there.
func (a *AccuracyLimit) validateProgram(m accuracy.Metric) error {
	switch {
	case m.Needs != accuracy.NeedsProgram && a.Program != "":
		return registry.Errorf(registry.CodeInvalid, "accuracy.program: %s is computed without a program: want metric program", m.Name)
	case m.Needs == accuracy.NeedsProgram && a.Program.Validate() != nil:
		return registry.Errorf(registry.CodeInvalid, "accuracy.program %.80q: want the digest of the program that computes the metric", a.Program)
	case m.Needs == accuracy.NeedsProgram && a.Output != "":
		return registry.Errorf(registry.CodeInvalid, "accuracy.output: a program reads all outputs: leave it out")
	}
	return nil
}

// ofSlice is the limit on one slice.
func (a AccuracyLimit) ofSlice() *AccuracyLimit {
	return &AccuracyLimit{Metric: a.Metric, Program: a.Program, Min: a.Slices.Min, Max: a.Slices.Max, Drop: a.Slices.Drop}
}

func (a *AccuracyLimit) validateSlices() error {
	if a.Slices == nil {
		return nil
	}
	if !isName(a.Slices.By) {
		return registry.Errorf(registry.CodeInvalid, "accuracy.slices.by %.64q: want the name of a tensor of the cases", a.Slices.By)
	}
	if err := a.ofSlice().validateMetric(); err != nil {
		return registry.Errorf(registry.CodeInvalid, "slices: %w", err)
	}
	return nil
}

// CheckRequirement checks that limits could ever be as strict as an environment requires: that the
// metric is known, and that it can have such values. Errors: CodeInvalid.
func CheckRequirement(r policy.AccuracyRequirement) error {
	limit := AccuracyLimit{Metric: r.Metric}
	if r.Min != nil {
		limit.Min = &AtLeast{Min: float64(*r.Min)}
	}
	if r.Max != nil {
		limit.Max = &AtMost{Max: float64(*r.Max)}
	}
	if r.Regression != nil {
		limit.Regression = &AtMost{Max: float64(*r.Regression)}
	}
	return limit.Validate()
}

// validateMetric checks that each limit is one that the metric can have.
func (a *AccuracyLimit) validateMetric() error {
	m, err := accuracy.Find(a.Metric)
	if err != nil {
		return err
	}
	if err := a.validateProgram(m); err != nil {
		return err
	}
	switch d := a.Detections; {
	case d != nil && m.Needs != accuracy.NeedsBoxes:
		return registry.Errorf(registry.CodeInvalid, "accuracy.detections: %s is of one output: want output", m.Name)
	case d != nil && (a.Output != "" || !isName(d.Boxes) || !isName(d.Scores) || !isName(d.Classes)):
		return registry.Errorf(registry.CodeInvalid, "accuracy.detections: want the outputs boxes, scores and classes, and no output beside them")
	case m.Loss && a.Min != nil:
		return registry.Errorf(registry.CodeInvalid, "accuracy.min: of %s less is better: want max", m.Name)
	case !m.Loss && a.Max != nil:
		return registry.Errorf(registry.CodeInvalid, "accuracy.max: of %s more is better: want min", m.Name)
	}
	if err := a.validateBounds(m); err != nil {
		return err
	}
	return a.validateSlices()
}

// validateBounds checks that each bound is a value that the metric can have.
func (a *AccuracyLimit) validateBounds(m accuracy.Metric) error {
	most, least := 1.0, 0.0
	if m.Loss {
		most = math.MaxFloat64
	}
	highest := 1.0
	switch m.Name {
	case "r2":
		least = -math.MaxFloat64
	case accuracy.Program:
		least, highest, most = -math.MaxFloat64, math.MaxFloat64, math.MaxFloat64
	}
	for _, err := range []error{a.Drop.within("accuracy.drop.max", most), a.Regression.within("accuracy.regression.max", most),
		a.Min.within("accuracy.min.min", least, highest), a.Max.within("accuracy.max.max", math.MaxFloat64),
		a.Relative.within("accuracy.relative.min", 0, 1)} {
		if err != nil {
			return err
		}
	}
	return nil
}
