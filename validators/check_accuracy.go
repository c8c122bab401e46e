package validators

import (
	"fmt"
	"math"
	"strconv"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/figure"
	"mlpromote.dev/mlpromote/validators/accuracy"
	"mlpromote.dev/mlpromote/validators/stats"
)

// accuracy judges accuracy.
func (j *judgement) accuracy(limit *AccuracyLimit, m Measured) {
	measured := m.Accuracy
	switch {
	case limit == nil:
		return
	case m.AccuracyFault != "":
		j.undecided(evidence.Reason{Code: ReasonNotRun, Figure: limit.Metric,
			Message: "accuracy was not measured: " + m.AccuracyFault})
		return
	case measured == nil || measured.Cases == 0:
		j.undecided(evidence.Reason{Code: ReasonNotRun, Figure: limit.Metric,
			Message: "accuracy was not measured: the cases have no labels"})
		return
	case measured.Metric != limit.Metric:
		j.undecided(evidence.Reason{Code: ReasonNotRun, Figure: limit.Metric,
			Message: fmt.Sprintf("accuracy was measured by %s, and the limit is on %s", measured.Metric, limit.Metric)})
		return
	}
	j.sides(limit, measured, m.Figures)
	j.ofSlices(limit, m.Slices)
	switch {
	case limit.Regression == nil:
	case m.CurrentFault != "":
		j.undecided(evidence.Reason{Code: ReasonNotRun, Figure: limit.Metric,
			Message: "the accuracy of the engine that the destination has now is not known: " + m.CurrentFault})
	case m.CurrentFigures != nil:
		j.figure(figure.Regression, most(limit.Regression), *m.CurrentFigures, m.CurrentFigures.Drop(j.confidence))
	case m.Current != nil:
		j.drop(figure.Regression, "that of the engine there now", limit.Regression.Max, m.Current)
	}
}

// sides judges the figures of an engine and of the reference; f is nil for a rate.
func (j *judgement) sides(limit *AccuracyLimit, a *evidence.Accuracy, f *accuracy.Figures) {
	if f != nil {
		j.figures(limit, *f)
	} else {
		j.counts(limit, a)
	}
}

// ofSlices judges each slice by itself: all have to keep the limits, so that no bound has to be
// corrected for their number.
func (j *judgement) ofSlices(limit *AccuracyLimit, all []accuracy.Slice) {
	if limit.Slices == nil {
		return
	}
	if len(all) == 0 {
		j.undecided(evidence.Reason{Code: ReasonNotRun, Figure: limit.Metric, Message: "slices by " + limit.Slices.By + " were not measured"})
	}
	for _, s := range all {
		value := strconv.FormatInt(s.Value, 10)
		low, high := boundsOf(s.Accuracy, s.Figures, j.confidence)
		j.slices = append(j.slices, evidence.SliceAccuracy{By: limit.Slices.By, Value: value, Accuracy: s.Accuracy,
			Low: evidence.Figure(low), High: evidence.Figure(high)})
		checks, found := len(j.checks), len(j.found)
		j.sides(limit.ofSlice(), &s.Accuracy, s.Figures)
		for i := range j.checks[checks:] {
			j.checks[checks+i].Slice = value
		}
		for i := range j.found[found:] {
			r := &j.found[found+i].Reason
			r.Message = fmt.Sprintf("slice %s=%s: %s", limit.Slices.By, value, r.Message)
		}
	}
}

// boundsOf bounds the accuracy of an engine.
func boundsOf(a evidence.Accuracy, f *accuracy.Figures, confidence float64) (low, high float64) {
	if f != nil {
		b := f.Absolute(confidence)
		return b.Low, b.High
	}
	misses := float64(a.Cases) - float64(a.Right)
	return 1 - stats.UpperRate(misses, a.Cases, confidence), 1 - stats.LowerRate(misses, a.Cases, confidence)
}

// counts judges a rate by the counts of its cases.
func (j *judgement) counts(limit *AccuracyLimit, a *evidence.Accuracy) {
	if limit.Min != nil {
		j.rate("", figure.Accuracy, limit.Min.Min, float64(a.Cases)-float64(a.Right), a.Cases)
	}
	if limit.Drop != nil {
		j.drop(figure.Drop, "the reference's", limit.Drop.Max, a)
	}
	if limit.Relative != nil {
		j.relative(limit.Relative.Min, a)
	}
}

// relative checks what share of the answers that the reference has right the engine has.
func (j *judgement) relative(limit float64, a *evidence.Accuracy) {
	check := checkOf("", figure.Relative, least(&AtLeast{limit}))
	check.Misses, check.Won, check.Cases = &a.Lost, &a.Won, a.Cases
	low, high := j.settle(&check, a)
	said := fmt.Sprintf("accuracy (%s) is %s of the reference's in %s", a.Metric, share(float64(check.Value)), registry.Count(a.Cases, "case"))
	reason := evidence.Reason{Figure: a.Metric, Limit: check.LimitValue(), Value: check.Value}
	switch check.Verdict {
	case evidence.VerdictPass:
	case evidence.VerdictFail:
		reason.Code = ReasonAccuracy
		reason.Message = fmt.Sprintf("%s, with %s confidence at most %s; the limit is %s", said, share(j.confidence), share(high), share(limit))
		j.fail(reason)
	default:
		reason.Code = ReasonNotEnough
		reason.Message = fmt.Sprintf("%s, which proves %s with %s confidence, and the limit is %s: use more cases",
			said, proven(low), share(j.confidence), share(limit))
		j.undecided(reason)
	}
	j.checks = append(j.checks, check)
}

// relativeRate is the accuracy of the engine over that of the reference, with its bounds.
func relativeRate(a evidence.Accuracy, confidence float64) (value, low, high float64) {
	right := float64(a.Right + a.Lost - a.Won) // of the reference
	low, high = stats.PairedRatio(int(math.Ceil(float64(a.Lost))), int(math.Floor(float64(a.Won))), right, a.Cases, confidence)
	return float64(a.Right) / right, low, high
}

// figures judges a metric that is no rate.
func (j *judgement) figures(limit *AccuracyLimit, f accuracy.Figures) {
	if limit.Min != nil {
		j.figure(figure.Accuracy, least(limit.Min), f, f.Absolute(j.confidence))
	}
	if limit.Max != nil {
		j.figure(figure.Accuracy, most(limit.Max), f, f.Absolute(j.confidence))
	}
	if limit.Drop != nil {
		j.figure(figure.Drop, most(limit.Drop), f, f.Drop(j.confidence))
	}
	if limit.Relative != nil {
		j.figure(figure.Relative, least(limit.Relative), f, f.Relative(j.confidence))
	}
}

// figure checks a limit on a figure by its bounds: it holds if the worse one does, and fails if the
// better one does not.
func (j *judgement) figure(name string, l limit, f accuracy.Figures, b accuracy.Bounded) {
	cases := len(f.Engine.Each)
	check := checkOf("", name, l)
	check.Value, check.Low, check.High, check.Cases, check.Resampled = evidence.Figure(b.Value), figureOf(b.Low), figureOf(b.High), cases, true
	worse, better := b.High, b.Low
	if l.atLeast {
		worse, better = b.Low, b.High
	}
	reference, engine := f.Sides()
	check.Verdict = l.decide(reference, engine, worse, better)
	defer func() { j.checks = append(j.checks, check) }()
	if check.Verdict == evidence.VerdictPass || j.sameBits(&check, !f.Same(), f.Rarest().Cases) {
		return
	}
	code := ReasonLimit
	if name != figure.Accuracy {
		code = ReasonAccuracy
	}
	reason := evidence.Reason{Code: code, Figure: f.Metric.Name, Limit: check.LimitValue(), Value: check.Value}
	said := j.saidOf(name, f, b)
	switch {
	case none(reference):
		reason.Code = ReasonNotRun
		reason.Message = fmt.Sprintf("%s of what the engine is compared with has no value: look at the labels, and at NaN among its outputs", f.Metric.Name)
		j.undecided(reason)
	case none(engine):
		reason.Message = said + ": the engine has outputs that are NaN or infinite"
		j.fail(reason)
	case check.Verdict == evidence.VerdictFail:
		reason.Message = fmt.Sprintf("%s, with %s confidence %s; the limit is %s", said,
			share(j.confidence), bound(!l.atLeast, better, name, f.Metric), amount(l.value, name, f.Metric))
		j.fail(reason)
	case math.IsInf(worse, 0):
		reason.Code = ReasonNotEnough
		reason.Message = fmt.Sprintf("%s, too few for a bound; the limit is %s: use at least 100 cases", said, amount(l.value, name, f.Metric))
		j.undecided(reason)
	default:
		reason.Code = ReasonNotEnough
		reason.Message = fmt.Sprintf("%s, with %s confidence %s, and the limit is %s: use more cases%s", said,
			share(j.confidence), bound(l.atLeast, worse, name, f.Metric), amount(l.value, name, f.Metric), ofRarest(name, l.value, f, j.confidence))
		j.undecided(reason)
	}
}

// ofRarest says of which class cases help most, of a limit on what an engine loses.
func ofRarest(name string, limit float64, f accuracy.Figures, confidence float64) string {
	class := f.Rarest()
	if class.Cases == 0 || name == figure.Accuracy {
		return ""
	}
	text := fmt.Sprintf(" of class %d: %d of these %d have it, and the bound follows from them", class.Number, class.Cases, len(f.Reference.Each))
	if class.Cases == len(f.Reference.Each) {
		text = ""
	}
	if name == figure.Relative {
		reference, _ := f.Sides()
		limit = reference * (1 - limit)
	}
	if need := f.CasesFor(limit, confidence); need > class.Cases {
		text += fmt.Sprintf("; it takes about %d without a difference", need)
	}
	return text
}

// none reports whether a figure has no value.
func none(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) }

// decide gives the verdict on bounds, and on the figures of both sides, of which the engine's may
// have no value.
func (l limit) decide(reference, engine, worse, better float64) evidence.Verdict {
	switch {
	case none(reference):
		return evidence.VerdictUndecided
	case none(engine):
		return evidence.VerdictFail
	case l.keeps(worse):
		return evidence.VerdictPass
	case !l.keeps(better):
		return evidence.VerdictFail
	}
	return evidence.VerdictUndecided
}

// saidOf says what was measured.
func (j *judgement) saidOf(name string, f accuracy.Figures, b accuracy.Bounded) string {
	reference, engine := f.Sides()
	cases := registry.Count(len(f.Engine.Each), "case")
	if name == figure.Accuracy {
		return fmt.Sprintf("%s is %.6g in %s", f.Metric.Name, engine, cases)
	}
	other := "the reference's"
	if name == figure.Regression {
		other = "that of the engine there now"
	}
	what := "a drop of"
	switch {
	case name == figure.Relative:
		what = "a share of"
	case f.Metric.Loss:
		what = "a rise of"
	}
	return fmt.Sprintf("%s is %.6g, %s is %.6g: %s %s in %s", f.Metric.Name, engine, other, reference, what, amount(b.Value, name, f.Metric), cases)
}

// amount writes a value of a figure with its unit: a share, or a number in that of the labels.
func amount(v float64, name string, m accuracy.Metric) string {
	if name == figure.Accuracy || name != figure.Relative && !m.Loss {
		return fmt.Sprintf("%.4g", v)
	}
	return share(v)
}

func bound(atLeast bool, v float64, name string, m accuracy.Metric) string {
	if atLeast {
		return "at least " + amount(v, name, m)
	}
	return "at most " + amount(v, name, m)
}
