package validators

import (
	"cmp"
	"fmt"
	"math"
	"strconv"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/figure"
	"mlpromote.dev/mlpromote/validators/stats"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// ReasonNotEnough is the code of reasons about limits that the cases neither prove nor exclude.
const ReasonNotEnough = "not_enough_cases"

// confidence returns the level of bounds: who tries n times has n chances to be lucky, so that
// the chance of each is divided by n (Bonferroni).
func (l Limits) confidence(attempts int) float64 {
	return 1 - (1-l.Confidence)/float64(max(attempts, 1))
}

// output judges an output.
func (j *judgement) output(name string, limits OutputLimits, r tensor.Result) {
	before := len(j.found)
	defer func() {
		j.names.sayNonFinite(j.found[before:], r)
		sayQuarter(j.found[before:], r)
		sayOffset(j.found[before:], r)
	}()
	if j.full = r.FullCases; j.full == 0 {
		j.undecided(evidence.Reason{Code: ReasonNotRun, Output: name,
			Message: fmt.Sprintf("output %s has no finite elements in any case, so that nothing was compared", name)})
		return
	}
	if j.full < j.least && j.cases >= j.least {
		j.undecided(evidence.Reason{Code: ReasonTooFewCases, Output: name, Message: fmt.Sprintf(
			"output %s has finite elements that count in %s, the limits ask for at least %d", name, registry.Count(j.full, "case"), j.least)})
	}
	j.finite(name, r)
	if r.NoChannels {
		j.undecided(evidence.Reason{Code: ReasonNotRun, Output: name, Message: fmt.Sprintf(
			"output %s has no spread of each channel: its last dimension differs between cases, or is above %d; "+
				"per_channel: false holds it to that of all values", name, tensor.MaxChannels)})
	}
	if limits.RTol != nil || limits.ATol != nil {
		j.elements(name, limits.Tolerance(), r)
	}
	rows, bounds := limits.judged(r.Quarters != nil)
	for i, row := range rows {
		limit := bounds[i]
		switch {
		case row.Name == figure.Close && r.NoFar:
			j.undecided(evidence.Reason{Code: ReasonNotRun, Output: name, Message: fmt.Sprintf(
				"output %s has no share of close cases: its channels are more than 16, or another number in each case; per_channel: false takes all values together", name)})
		case row.Rate:
			misses, cases := r.Misses(row.Name)
			if row.Name == figure.Top1 && r.Top1Rows == 0 {
				misses = math.NaN() // nothing is ranked
			}
			j.rate(name, row.Name, limit, misses, cases)
		default:
			value, worst := r.Figure(row.Name)
			j.exact(name, row, limit, value, worst)
		}
	}
	j.answers(name, limits, r)
	j.groups(name, r)
}

// groups fails an engine that always gives the same answer in a group of cases in which the reference's answers vary.
func (j *judgement) groups(output string, r tensor.Result) {
	g := r.Groups
	if g == nil || g.Count == 0 {
		return
	}
	check := checkOf(output, figure.Groups, most(&AtMost{}))
	check.Value, check.Cases, check.Verdict = evidence.Figure(g.Lost), j.full, evidence.VerdictPass
	if g.Lost > 0 {
		check.Verdict = evidence.VerdictFail
		with := fmt.Sprintf(" with %s = %s", g.Worst.By, g.Worst.Value)
		if g.Worst.By == "" {
			with = ""
		}
		what, same := "answers vary", "always gives the same"
		if g.Worst.Index >= 0 {
			what, same = fmt.Sprintf("value %d varies", g.Worst.Index), "has almost the same always"
		}
		message := fmt.Sprintf("output %s: in the %s%s %s's %s, and %s %s",
			output, registry.Count(g.Worst.Cases, "case"), with, j.names.Reference, what, j.names.Engine, same)
		if g.Lost > 1 && g.Worst.By != "" {
			message += fmt.Sprintf("; so it does in %s", registry.Count(g.Lost-1, "other group"))
		}
		j.fail(evidence.Reason{Code: ReasonLimit, Output: output, Figure: figure.Groups, Limit: check.LimitValue(), Value: check.Value, Message: message})
	}
	j.checks = append(j.checks, check)
}

// answers judges what comes with a limit on equal answers: classes.
func (j *judgement) answers(name string, limits OutputLimits, r tensor.Result) {
	if limits.ofAnswers() {
		j.classes(name, r)
	}
}

// ofAnswers reports whether a limit is on the share of equal answers.
func (o OutputLimits) ofAnswers() bool {
	return o.Top1 != nil && o.Top1.Min > 0 || o.Equal != nil || o.Detections != nil
}

// leastKept is the share of the cases of a class in which the engine has to answer it at half of the places or more.
const leastKept = 0.5

// classes fails an engine that loses more than half of a class in more than half of the cases that have it: a class that is rare moves no
// figure over all answers. Each case counts once, whatever the number of its places.
func (j *judgement) classes(output string, r tensor.Result) {
	worst, ok := r.WorstClass()
	if !ok {
		return
	}
	check := checkOf(output, figure.KeptClasses, limit{leastKept, true, true})
	check.Misses, check.Cases = figureOf(float64(worst.Lost)), worst.Cases
	if j.settle(&check, nil); check.Verdict == evidence.VerdictFail {
		j.fail(evidence.Reason{Code: ReasonLimit, Output: output, Figure: figure.KeptClasses, Limit: check.LimitValue(), Value: check.Value,
			Message: fmt.Sprintf("output %s: %s: in %d of the %s in which %s answers it, %s loses it at more than half of the places, or answers it at more others",
				output, className(worst.Class), worst.Lost, registry.Count(worst.Cases, "case"), j.names.Reference, j.names.Engine)})
	}
	j.checks = append(j.checks, check)
}

// className names a class in a message.
func className(class int) string {
	if class == tensor.OtherClasses {
		return fmt.Sprintf("classes from %d on", class)
	}
	return fmt.Sprintf("class %d", class)
}

// checkOf returns the check of a limit on the run of all cases, before anything is measured.
func checkOf(output, name string, l limit) evidence.Check {
	return evidence.Check{Trial: evidence.TrialCases, Baseline: baselineOf(name), Output: output, Figure: name, Limit: figureOf(l.value), AtLeast: l.atLeast}
}

// baselineOf returns what a figure of the run of all cases compares with.
func baselineOf(name string) evidence.Baseline {
	switch row, _ := figure.Find(name); {
	case name == figure.Regression:
		return evidence.BaselineCurrent
	case row.Subject == figure.Answers:
		return evidence.BaselineLabels
	}
	return evidence.BaselineGolden
}

// exact checks a limit that must hold for every case that ran. worst is the number of the worst
// case, or -1.
func (j *judgement) exact(output string, row figure.Row, bound, measured float64, worst int) {
	check := checkOf(output, row.Name, limit{bound, row.AtLeast, true})
	check.Value, check.Cases, check.Verdict = evidence.Figure(measured), j.full, evidence.VerdictPass
	if worst >= 0 {
		check.Case = &worst
	}
	if row.Keeps(measured, bound) {
		if !row.Overall {
			check.Proves = figureOf(stats.UpperRate(0, j.full, j.confidence))
		}
		j.checks = append(j.checks, check)
		return
	}
	check.Verdict = evidence.VerdictFail
	j.checks = append(j.checks, check)
	how := "above"
	if row.AtLeast {
		how = "below"
	}
	j.exceeded(output, row.Name, row.Phrase, bound, measured, worst, how)
}

// elements checks the tolerances of elements.
func (j *judgement) elements(output string, tolerance tensor.Options, r tensor.Result) {
	check := checkOf(output, figure.Elements, most(&AtMost{}))
	check.Value, check.Cases, check.Verdict = evidence.Figure(r.Failed), j.full, evidence.VerdictPass
	if r.Worst != nil {
		check.Case = &r.Worst.Case
	}
	if r.Failed > 0 {
		check.Verdict = evidence.VerdictFail
		j.tolerance(output, tolerance, r)
	} else {
		check.Proves = figureOf(stats.UpperRate(0, j.full, j.confidence))
	}
	j.checks = append(j.checks, check)
}

// rate checks a limit on a share of cases by its bounds: it holds if the lower one does, and
// fails if the upper one does not.
func (j *judgement) rate(output, name string, bound, misses float64, cases int) {
	row, _ := figure.Find(name)
	check := checkOf(output, name, limit{bound, true, true})
	check.Misses, check.Cases = figureOf(misses), cases
	low, high := j.settle(&check, nil)
	subject := ""
	if output != "" {
		subject = "output " + output + ": "
	}
	said := fmt.Sprintf("%s%s is %s in %s", subject, cmp.Or(row.Phrase, name), share(float64(check.Value)), registry.Count(cases, "case"))
	switch {
	case math.IsNaN(misses):
		j.fail(evidence.Reason{Code: ReasonLimit, Output: output, Figure: name, Limit: check.LimitValue(), Value: check.Value,
			Message: fmt.Sprintf("%s%s has no value: the output has no rows of two or more values; if it has no scores, give it another kind", subject, name)})
	case check.Verdict == evidence.VerdictPass:
	case check.Verdict == evidence.VerdictFail:
		j.fail(evidence.Reason{Code: ReasonLimit, Output: output, Figure: name, Limit: check.LimitValue(), Value: check.Value,
			Message: fmt.Sprintf("%s: with %s confidence at most %s, below the limit of %s", said, share(j.confidence), share(high), share(bound))})
	default:
		j.undecided(evidence.Reason{Code: ReasonNotEnough, Output: output, Figure: name, Limit: check.LimitValue(), Value: check.Value,
			Message: fmt.Sprintf("%s, which proves %s with %s confidence, and the limit is %s: %s",
				said, proven(low), share(j.confidence), share(bound), enough(misses, cases, 1-bound, j.confidence))})
	}
	j.checks = append(j.checks, check)
}

// enough says how many cases would prove a limit on the rate of misses, if they miss as often.
func enough(misses float64, cases int, limit, confidence float64) string {
	rate := misses / float64(max(cases, 1))
	for n := float64(max(cases, 8)); rate < limit && n < 1e7; n *= 1.02 {
		if whole := int(math.Ceil(n)); stats.UpperRate(math.Min(rate*n, n), whole, confidence) <= limit {
			return enoughText(whole, cases)
		}
	}
	return noneEnough
}

// mostPractical is above how many cases nobody is asked for them.
const mostPractical = 30_000

const noneEnough = "no number of cases like these would prove it: ask for less, or improve the engine"

// enoughText says that so many cases like those at hand would prove a limit, and what to do if nobody has so many.
func enoughText(needed, cases int) string {
	digit := math.Pow(10, max(math.Floor(math.Log10(float64(needed)))-1, 0))
	about := int(math.Round(float64(needed)/digit) * digit)
	if about <= cases {
		about = int(math.Ceil(float64(needed)/digit) * digit)
	}
	text := strconv.Itoa(about)
	for at := len(text) - 3; at > 0; at -= 3 {
		text = text[:at] + "," + text[at:]
	}
	if needed > mostPractical {
		return fmt.Sprintf("it would take about %s cases like these, which is not practical: ask for less, or improve the engine", text)
	}
	return fmt.Sprintf("about %s cases like these would prove it", text)
}

// share writes a share in percent.
func share(v float64) string { return fmt.Sprintf("%.4g %%", 100*v) }

// proven writes a share that is proven: rounded down, so that it never says too much.
func proven(v float64) string { return fmt.Sprintf("%.6g %%", math.Floor(v*1e4)/100) }

func figureOf(v float64) *evidence.Figure {
	f := evidence.Figure(v)
	return &f
}

// drop checks by how much the engine may be less accurate than the reference, or than the engine
// that the destination has now: the answers that only one of them has right decide.
func (j *judgement) drop(name, other string, limit float64, a *evidence.Accuracy) {
	lost, won := int(math.Ceil(float64(a.Lost))), int(math.Floor(float64(a.Won)))
	check := checkOf("", name, most(&AtMost{limit}))
	check.Misses, check.Won, check.Cases = &a.Lost, &a.Won, a.Cases
	low, high := j.settle(&check, a)
	said := fmt.Sprintf("accuracy (%s) is %.2f %%, %s is %.2f %%: a drop of %.2f points in %s", a.Metric,
		100*a.Engine, other, 100*a.Reference, 100*check.Value, registry.Count(a.Cases, "case"))
	switch check.Verdict {
	case evidence.VerdictPass:
	case evidence.VerdictFail:
		j.fail(evidence.Reason{Code: ReasonAccuracy, Figure: a.Metric, Limit: check.LimitValue(), Value: check.Value,
			Message: fmt.Sprintf("%s, with %s confidence at least %.2f; the limit is %.2f", said, share(j.confidence), 100*low, 100*limit)})
	default:
		j.undecided(evidence.Reason{Code: ReasonNotEnough, Figure: a.Metric, Limit: check.LimitValue(), Value: check.Value,
			Message: fmt.Sprintf("%s, with %s confidence at most %.2f, and the limit is %.2f: %s", said,
				share(j.confidence), 100*high, 100*limit, enoughForDrop(lost, won, a.Cases, limit, j.confidence))})
	}
	j.checks = append(j.checks, check)
}

// enoughForDrop says how many cases would prove a limit on the drop, if they come out alike.
func enoughForDrop(lost, won, cases int, limit, confidence float64) string {
	scale := func(count int, n float64) int { return int(math.Round(float64(count) * n / float64(cases))) }
	for n := float64(max(cases, 8)); float64(lost-won) < limit*float64(cases) && n < 1e7; n *= 1.02 {
		if _, high := stats.PairedDrop(scale(lost, n), scale(won, n), int(n), confidence); high <= limit {
			return enoughText(int(n), cases)
		}
	}
	return noneEnough
}
