package validators

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/figure"
	"mlpromote.dev/mlpromote/validators/accuracy"
	"mlpromote.dev/mlpromote/validators/percase"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// Beside is what a report is judged again with, beside what it says itself. The zero Beside is nothing.
type Beside struct {
	Figures []byte // the file of per-case figures that the report names
	// Limits are those that the report names; nil: not at hand. Precision is that of the engine; if
	// it is empty, it is the one whose limits the report fits best.
	Limits    *Limits
	Precision string
}

// recounted is what the per-case figures of a report give. What is nil is not in the file.
type recounted struct {
	accuracy, current *accuracy.Counter
	slices            []accuracy.Slice
}

// recount computes what the report says of all cases again from the figures of each case. Errors:
// CodeDigest for another file than the report names; CodeInvalid if the report names no file, or the
// file is none.
func (r *rejudgement) recount(beside Beside) error {
	data := beside.Figures
	if data == nil {
		return nil
	}
	if err := r.report.CaseFigures.CheckFile(data); err != nil {
		return err
	}
	figures, err := percase.Read(data)
	if err != nil {
		return err
	}
	r.found.Recounted = true
	r.each.accuracy = r.restore("accuracy", r.report.Accuracy, figures.Accuracy)
	var current *evidence.Accuracy
	if r.report.Current != nil {
		current = &r.report.Current.Accuracy
	}
	r.each.current = r.restore("accuracy beside the engine there now", current, figures.Current)
	r.recountSlices(figures.Slices)
	r.recountOutputs(figures.Outputs, beside)
	return nil
}

// restore computes an accuracy again; nil if it cannot be.
func (r *rejudgement) restore(what string, said *evidence.Accuracy, columns accuracy.Columns) *accuracy.Counter {
	switch {
	case said == nil && len(columns) == 0:
		return nil
	case said == nil:
		r.differ(what, "nothing", "figures: there are some of each case")
		return nil
	case len(columns) == 0:
		r.differ(what+": per-case figures", "none", "those of "+registry.Count(said.Cases, "case"))
		return nil
	}
	metric, err := accuracy.Find(said.Metric)
	if err != nil {
		r.differ(what, said.Metric, "nothing: this version has no such metric")
		return nil
	}
	counter, err := accuracy.Restore(metric, said.Seed, said.Cases, columns)
	if err != nil {
		r.differ(what+": per-case figures", err.Error(), "those of "+metric.Name)
		return nil
	}
	r.compareAccuracy(what, *said, counter.Result())
	return counter
}

// compareAccuracy compares an accuracy with the one that follows.
func (r *rejudgement) compareAccuracy(what string, said, follows evidence.Accuracy) {
	for _, figure := range []struct {
		name          string
		said, follows evidence.Figure
	}{
		{"reference", said.Reference, follows.Reference}, {"engine", said.Engine, follows.Engine}, {"drop", said.Drop, follows.Drop},
		{"lost", said.Lost, follows.Lost}, {"won", said.Won, follows.Won}, {"right", said.Right, follows.Right},
		{"cases", evidence.Figure(said.Cases), evidence.Figure(follows.Cases)}, {"count", evidence.Figure(said.Count), evidence.Figure(follows.Count)},
	} {
		r.same(what+": "+figure.name, &figure.said, float64(figure.follows))
	}
}

// recountSlices computes the accuracy on slices again.
func (r *rejudgement) recountSlices(of []int64) {
	said := r.report.Slices
	switch {
	case len(of) == 0 && len(said) == 0 || r.each.accuracy == nil:
		return
	case len(of) != r.each.accuracy.Cases():
		r.differ("slices: per-case figures", registry.Count(len(of), "case"), registry.Count(r.each.accuracy.Cases(), "case"))
		return
	}
	follows, err := r.each.accuracy.Slices(of)
	if err != nil {
		r.differ("slices: per-case figures", err.Error(), "slices")
		return
	}
	r.each.slices = follows
	if len(follows) != len(said) {
		r.differ("slices", fmt.Sprint(len(said)), fmt.Sprint(len(follows)))
		return
	}
	for i, s := range follows {
		value := strconv.FormatInt(s.Value, 10)
		if said[i].Value != value {
			r.differ("slice "+said[i].Value, "there", "slice "+value+" in its place")
			continue
		}
		r.compareAccuracy("slice "+value, said[i].Accuracy, s.Accuracy)
		low, high := boundsOf(s.Accuracy, s.Figures, float64(r.report.Confidence))
		r.same("slice "+value+": low", &said[i].Low, low)
		r.same("slice "+value+": high", &said[i].High, high)
	}
}

// counted is the counter that a check of accuracy is about, with its figures; nil for none at hand, and
// for a rate, whose counts were compared already.
func (r *rejudgement) counted(c evidence.Check) *accuracy.Figures {
	switch {
	case c.Slice != "":
		for _, s := range r.each.slices {
			if strconv.FormatInt(s.Value, 10) == c.Slice {
				return s.Figures
			}
		}
		return nil
	case c.Figure == figure.Regression && r.each.current != nil:
		return r.each.current.Figures()
	case c.Figure != figure.Regression && r.each.accuracy != nil:
		return r.each.accuracy.Figures()
	}
	return nil
}

// boundsOfCheck computes the bounds of a check again by the bootstrap.
func boundsOfCheck(c evidence.Check, f accuracy.Figures, confidence float64) accuracy.Bounded {
	switch {
	case c.Figure == figure.Relative:
		return f.Relative(confidence)
	case isDrop(c):
		return f.Drop(confidence)
	}
	return f.Absolute(confidence)
}

// recountOutputs compares the figures of outputs with those of each case.
func (r *rejudgement) recountOutputs(each map[string][]tensor.CaseFigures, beside Beside) {
	for _, name := range slices.Sorted(maps.Keys(each)) {
		what := "output " + name
		said, ok := r.report.Outputs[name]
		if !ok || len(each[name]) != r.report.Cases.Ran {
			r.differ(what+": per-case figures", registry.Count(len(each[name]), "case"),
				fmt.Sprintf("those of an output of the report, of %s", registry.Count(r.report.Cases.Ran, "case")))
			continue
		}
		total := summed(each[name], said.Top1 != nil)
		r.same(what+": maxAbs", &said.MaxAbs, total.maxAbs)
		r.same(what+": cosineMin", &said.CosineMin, total.cosine)
		r.same(what+": caseError", &said.CaseError, total.caseError)
		if beside.oneSpread(name) {
			r.recountSpread(name, said, each[name])
		}
		for _, c := range r.report.Checks.OfCases() {
			if c.Output == name {
				r.recountCheck(what+", "+c.Figure, c, total)
			}
		}
	}
	if r.report.CaseFigures.LeftOut != "" {
		return
	}
	for name := range r.report.Outputs {
		if _, ok := each[name]; !ok {
			r.differ("output "+name+": per-case figures", "none", "those of "+registry.Count(r.report.Cases.Ran, "case"))
		}
	}
}

// totals are the figures of an output over all cases.
type totals struct {
	failed                    int64
	maxAbs, cosine, caseError float64
	equal, top1               float64 // misses
	full, ranked              int     // cases with elements, and with rows to rank
}

// summed adds the figures of cases in their order. An output without rows has no misses of them, and one whose rows all say
// nothing has none that were missed.
func summed(each []tensor.CaseFigures, rows bool) totals {
	t := totals{cosine: 1}
	for i, of := range each {
		t.failed += of.Failed
		t.maxAbs, t.caseError = max(t.maxAbs, of.MaxAbs), max(t.caseError, of.Error)
		if i == 0 || of.Cosine < t.cosine {
			t.cosine = of.Cosine
		}
		if !math.IsNaN(of.Equal) {
			t.full, t.equal = t.full+1, t.equal+of.Equal
		}
		if !math.IsNaN(of.Top1) {
			t.ranked, t.top1 = t.ranked+1, t.top1+of.Top1
		}
	}
	if !rows {
		t.top1 = math.NaN()
	}
	return t
}

// recountCheck compares the counts of a check of an output.
func (r *rejudgement) recountCheck(what string, c evidence.Check, t totals) {
	cases := t.full
	switch c.Figure {
	case figure.Elements:
		r.same(what+": value", &c.Value, float64(t.failed))
	case figure.Equal:
		r.same(what+": misses", c.Misses, t.equal)
	case figure.Top1:
		cases = t.ranked
		r.same(what+": misses", c.Misses, t.top1)
	case figure.KeptClasses, figure.Detections: // of the cases that have the class, which or of all outputs together: the file does not tell
		return
	}
	if c.Cases != cases {
		r.differ(what+": cases", fmt.Sprint(c.Cases), fmt.Sprint(cases))
	}
}
