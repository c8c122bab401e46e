package validators

import (
	"fmt"
	"maps"
	"slices"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/figure"
)

// A limitOf is a limit that a report has to have a check of.
type limitOf struct {
	output, figure, slice string
	limit
}

func (l limitOf) String() string {
	text := l.figure
	if l.output != "" {
		text = "output " + l.output + ", " + text
	}
	if l.slice != "" {
		text += " of slice " + l.slice
	}
	return text
}

// limits compares the checks of the report with the limits that it names: a report could else pass by
// leaving out what fails. It returns a verdict for each thing that is missing. A report that could
// not be judged to its end, such as one of outputs of another shape, may lack checks.
func (r *rejudgement) limits(beside Beside) (missing []evidence.Verdict) {
	l := beside.Limits
	if l == nil {
		return nil
	}
	r.found.ByLimits = true
	differ := func(what, said, follows string) {
		r.differ(what, said, follows)
		missing = append(missing, evidence.VerdictUndecided)
	}
	if !near(float64(r.found.Confidence), l.Confidence) {
		differ("confidence of the limits", number(float64(r.found.Confidence)), number(l.Confidence))
	}
	for _, d := range r.tooFewCases(l.MinCases) {
		differ(d.What, d.Said, d.Follows)
	}
	for _, reason := range r.lackingConsistency(*l) {
		differ("consistency", notThere, reason.Message)
	}
	precisions := []string{beside.Precision}
	if beside.Precision == "" {
		precisions = slices.Sorted(maps.Keys(l.Precisions))
	}
	var fewest []Difference
	for i, precision := range precisions {
		if found := r.compareLimits(l.Precisions[precision].Outputs); i == 0 || len(found) < len(fewest) {
			fewest = found
		}
	}
	partial := r.hasOtherReasons()
	for _, d := range append(fewest, r.compareAccuracyLimits(l.Accuracy)...) {
		if d.Said != notThere || !partial {
			differ(d.What, d.Said, d.Follows)
		}
	}
	return missing
}

// tooFewCases says where there are fewer cases than the limits ask for. A report that is no pass, and has a reason that no check
// has, says so itself, or why none ran.
func (r *rejudgement) tooFewCases(least int) (differences []Difference) {
	if r.said != evidence.VerdictPass && r.hasOtherReasons() {
		return nil
	}
	want := fmt.Sprintf("at least %d", least)
	if r.report.Cases.Ran < least {
		differences = append(differences, Difference{"cases", fmt.Sprint(r.report.Cases.Ran), want})
	}
	for _, name := range slices.Sorted(maps.Keys(r.report.Outputs)) {
		if most, checked := r.mostCases(name); checked && most < least {
			differences = append(differences, Difference{"cases of output " + name, fmt.Sprint(most), want})
		}
	}
	return differences
}

// mostCases is the largest number of cases that a check of an output has; false without a check. Those of top1 are fewer where
// rows of cases say nothing.
func (r *rejudgement) mostCases(output string) (most int, checked bool) {
	for _, c := range r.report.Checks.OfCases() {
		if c.Output == output && c.Figure != figure.Top1 {
			most, checked = max(most, c.Cases), true
		}
	}
	return most, checked
}

// lackingConsistency gives a reason for each consistency check that the limits want and the report does not have. A report
// that fails for another reason may have been made before they began.
func (r *rejudgement) lackingConsistency(l Limits) []evidence.Reason {
	if r.said != evidence.VerdictPass {
		return nil
	}
	return append(l.JudgeNotRun(r.report.Checks.Beyond()), r.lackingGolden()...)
}

// GoldenDiffer is in one of how many cases golden outputs may differ from what the reference model computes again.
const GoldenDiffer = 64

// lackingGolden gives a reason where nothing in a report that passes says that the golden outputs are those of the reference model: no pass
// is without.
func (r *rejudgement) lackingGolden() []evidence.Reason {
	why := ""
	if c, there := r.report.Checks.Of(evidence.TrialGolden); !there {
		why = "there is no check golden, of the golden outputs"
	} else {
		switch {
		case c.Verdict != evidence.VerdictPass && c.Verdict != evidence.VerdictRecorded:
			why = fmt.Sprintf("the check golden is %q beside a pass", c.Verdict)
		case c.Cases < 1:
			why = "the check golden compared no case"
		case c.Converted > c.Cases || c.Affected > (c.Cases-c.Converted)/GoldenDiffer || (c.Affected > 0) != (c.Verdict == evidence.VerdictRecorded):
			why = fmt.Sprintf("the check golden is %q, with %d of %s that differ", c.Verdict, c.Affected, registry.Count(c.Cases, "case"))
		}
	}
	if why == "" {
		return nil
	}
	return []evidence.Reason{{Code: ReasonNotRun, Trial: evidence.TrialGolden, Message: why}}
}

// notThere is what a report says of a limit that it has no check of.
const notThere = "nothing"

// hasOtherReasons reports whether a report has reasons that no check has.
func (r *rejudgement) hasOtherReasons() bool {
	return slices.ContainsFunc(r.report.Reasons, func(reason evidence.Reason) bool { return !slices.Contains(reasonsOfChecks, reason.Code) })
}

// compareLimits compares the checks of outputs with the limits on them.
func (r *rejudgement) compareLimits(outputs map[string]OutputLimits) []Difference {
	var want []limitOf
	for _, name := range slices.Sorted(maps.Keys(outputs)) {
		if q := r.report.Outputs[name].Quarters; q != nil && !possibleQuarters(*q) {
			r.differ("output "+name+": quarters", fmt.Sprint(q.Of), "four quarters of values above 0, of which some are above 1, in their order")
		}
		want = append(want, outputs[name].limits(name, r.report.Outputs[name].Quarters != nil)...)
	}
	for _, name := range slices.Sorted(maps.Keys(outputs)) {
		if outputs[name].ofAnswers() && r.report.Outputs[name].Classes != nil {
			want = append(want, limitOf{output: name, figure: figure.KeptClasses, limit: limit{leastKept, true, true}})
		}
		if g := r.report.Outputs[name].Groups; g != nil && g.Count > 0 {
			want = append(want, limitOf{output: name, figure: figure.Groups, limit: most(&AtMost{})})
		}
	}
	return r.compareChecks(want, func(c evidence.Check) bool { return c.Output != "" })
}

// possibleQuarters reports whether values can have such quarters.
func possibleQuarters(q evidence.Quarters) bool {
	if len(q.Of) != 4 || !(q.Of[0].From > 0 && q.Of[3].To > 1) {
		return false
	}
	for i, of := range q.Of {
		if !(of.From <= of.To && of.Error >= 0) || i > 0 && !(q.Of[i-1].To <= of.From) {
			return false
		}
	}
	return true
}

// limits lists the limits on an output of which a report has checks. quarters reports whether its values are of many magnitudes.
func (o OutputLimits) limits(name string, quarters bool) []limitOf {
	var all []limitOf
	add := func(of string, l limit) {
		if l.there {
			all = append(all, limitOf{output: name, figure: of, limit: l})
		}
	}
	add(figure.Elements, limit{there: o.RTol != nil || o.ATol != nil})
	rows, bounds := o.judged(quarters)
	for i, row := range rows {
		add(row.Name, limit{bounds[i], row.AtLeast, true})
	}
	return all
}

// compareAccuracyLimits compares the checks of accuracy with the limits on it.
func (r *rejudgement) compareAccuracyLimits(l *AccuracyLimit) []Difference {
	ofAccuracy := func(c evidence.Check) bool { return c.Output == "" }
	if l == nil {
		return r.compareChecks(nil, ofAccuracy)
	}
	if r.report.Accuracy == nil {
		return []Difference{{"accuracy", notThere, "the limits have one by " + l.Metric}}
	}
	var differences []Difference
	if r.report.Accuracy.Metric != l.Metric {
		differences = append(differences, Difference{"accuracy: metric", r.report.Accuracy.Metric, l.Metric})
	}
	if r.report.Accuracy.Program != l.Program {
		differences = append(differences, Difference{"accuracy: program", string(r.report.Accuracy.Program), string(l.Program)})
	}
	want := l.checks("")
	replaces := r.report.Destination != nil && len(r.report.Destination.Engine) > 0
	if (r.report.Current != nil || replaces) && l.Regression != nil {
		want = append(want, limitOf{figure: figure.Regression, limit: most(l.Regression)})
	}
	if l.Slices != nil && len(r.report.Slices) == 0 {
		differences = append(differences, Difference{"slices by " + l.Slices.By, notThere, "the accuracy of each: the limits ask for it"})
	}
	for _, s := range r.report.Slices {
		if l.Slices == nil || s.By != l.Slices.By {
			differences = append(differences, Difference{"slice " + s.Value, "by " + s.By, "no such slice: the limits ask for none"})
			continue
		}
		want = append(want, l.ofSlice().checks(s.Value)...)
	}
	return append(differences, r.compareChecks(want, ofAccuracy)...)
}

// checks lists the limits of which each slice has checks, and all cases.
func (a AccuracyLimit) checks(slice string) []limitOf {
	var all []limitOf
	for _, of := range []struct {
		figure string
		limit
	}{{figure.Accuracy, least(a.Min)}, {figure.Accuracy, most(a.Max)}, {figure.Drop, most(a.Drop)}, {figure.Relative, least(a.Relative)}} {
		if of.there {
			all = append(all, limitOf{figure: of.figure, slice: slice, limit: of.limit})
		}
	}
	return all
}

// compareChecks compares some of the checks with the limits that they are of.
func (r *rejudgement) compareChecks(want []limitOf, some func(evidence.Check) bool) (differences []Difference) {
	checks := slices.DeleteFunc(r.report.Checks.OfCases(), func(c evidence.Check) bool { return !some(c) })
	for _, l := range want {
		at := slices.IndexFunc(checks, func(c evidence.Check) bool {
			return c.Output == l.output && c.Figure == l.figure && c.Slice == l.slice
		})
		if at < 0 {
			differences = append(differences, Difference{l.String(), notThere, "a check: the limits bound it"})
			continue
		}
		if c := checks[at]; float64(c.LimitValue()) != l.value {
			differences = append(differences, Difference{l.String() + ": limit", number(float64(c.LimitValue())), number(l.value) + " as in the limits"})
		}
		checks = slices.Delete(checks, at, at+1)
	}
	for _, c := range checks {
		differences = append(differences, Difference{limitOf{output: c.Output, figure: c.Figure, slice: c.Slice}.String(),
			"a check", "nothing: the limits do not bound it"})
	}
	return differences
}
