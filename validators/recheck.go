package validators

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/figure"
	"mlpromote.dev/mlpromote/validators/accuracy"
	"mlpromote.dev/mlpromote/validators/stats"
)

// Rejudged is a parity report judged again by the counts that it has itself.
type Rejudged struct {
	Said    evidence.Verdict `json:"said"`    // by the report
	Verdict evidence.Verdict `json:"verdict"` // that follows from its counts
	// Confidence is that of the limits, before it was divided among the attempts.
	Confidence evidence.Figure `json:"confidence"`
	Attempts   int             `json:"attempts"`
	Checks     int             `json:"checks"` // that were computed again
	// Taken is how many of them have bounds by a bootstrap, which were taken as the report says
	// them: they do not follow from counts, and the per-case figures are not at hand.
	Taken int `json:"taken,omitempty"`
	// Recounted is true if the per-case figures were at hand, so that all counts and bounds of
	// accuracy were computed from them.
	Recounted bool `json:"recounted,omitempty"`
	// ByLimits is true if the limits were at hand, so that each of them has to have a check.
	ByLimits bool `json:"byLimits,omitempty"`
	// Differences are what the report says and its counts do not give; empty if it says the same.
	Differences []Difference `json:"differences"`
}

// Difference is one thing that a report says otherwise than its counts give.
type Difference struct {
	What    string `json:"what"` // "output y, top1: low"
	Said    string `json:"said"`
	Follows string `json:"follows"`
}

// boundTolerance is how far bounds may lie apart that two machines compute from equal counts.
const boundTolerance = 1e-9

// reasonsOfChecks are the codes of reasons that checks have too.
var reasonsOfChecks = []string{ReasonLimit, ReasonAccuracy, ReasonNotEnough}

// Rejudge judges a parity report again without the engine: it computes the bounds and the verdict
// of every check from misses, answers won, cases, confidence and limit, and the verdict of the
// report from those, its consistency checks and its reasons. It does not read who signed the report, and it
// cannot know whether the counts are true. Errors: CodeInvalid for a report by another version of
// limits than [LimitsVersion].
func Rejudge(report evidence.ParityReport) (Rejudged, error) { return RejudgeWith(report, Beside{}) }

// RejudgeWith is Rejudge with the per-case figures and the limits of the report, where they are at hand: all
// bounds and counts are computed again from the figures, and every limit has to have a check. Errors:
// those of Rejudge; CodeDigest for another file of figures than the report names; CodeInvalid for a file
// that is none.
func RejudgeWith(report evidence.ParityReport, beside Beside) (Rejudged, error) {
	if report.Rules != LimitsVersion {
		return Rejudged{}, registry.Errorf(registry.CodeInvalid,
			"the report is by limits of version %d: this program knows version %d", report.Rules, LimitsVersion)
	}
	said := cmp.Or(report.Verdict, evidence.VerdictUndecided)
	again := rejudgement{report: report, said: said, found: Rejudged{Said: said, Attempts: report.Attempts,
		Checks: len(report.Checks.OfCases()), Differences: []Difference{}}}
	again.confidence()
	if err := again.recount(beside); err != nil {
		return Rejudged{}, err
	}
	verdicts := make([]evidence.Verdict, 0, len(report.Checks))
	for _, c := range report.Checks.OfCases() {
		verdicts = append(verdicts, again.check(c))
	}
	again.fold(slices.Concat(verdicts, again.slices(), again.limits(beside)))
	return again.found, nil
}

// rejudgement collects differences.
type rejudgement struct {
	report evidence.ParityReport
	said   evidence.Verdict // of the report
	found  Rejudged
	each   recounted
}

func (r *rejudgement) differ(what, said, follows string) {
	r.found.Differences = append(r.found.Differences, Difference{what, said, follows})
}

// confidence computes the confidence of the limits from that of the report and the attempts: see
// Limits.confidence.
func (r *rejudgement) confidence() {
	if r.report.Attempts < 1 {
		r.differ("attempts", fmt.Sprint(r.report.Attempts), "at least 1: this one counts")
	}
	limits := 1 - (1-float64(r.report.Confidence))*float64(max(r.report.Attempts, 1))
	r.found.Confidence = evidence.Figure(math.Round(limits*1e12) / 1e12)
	if !(limits > 0.5 && limits < 1) {
		r.differ("confidence", fmt.Sprintf("%v in %s", float64(r.report.Confidence), registry.Count(r.report.Attempts, "attempt")),
			"limits of a confidence above 0.5 and below 1")
	}
}

// check computes a check again and gives its verdict.
func (r *rejudgement) check(c evidence.Check) evidence.Verdict {
	c.Verdict = cmp.Or(c.Verdict, evidence.VerdictUndecided)
	what := c.Figure
	if c.Output != "" {
		what = "output " + c.Output + ", " + c.Figure
	}
	if c.Slice != "" {
		what += " of slice " + c.Slice
	}
	row, known := figure.Find(c.Figure)
	if !known {
		r.differ(what, string(c.Verdict), "nothing: no limit of this version has such a figure")
		return evidence.VerdictUndecided
	}
	metric, err := accuracy.Find(r.metric())
	if row.Subject == figure.Answers && err != nil {
		r.differ(what, r.metric(), "nothing: this version has no such metric")
		return evidence.VerdictUndecided
	}
	if c.Figure == figure.Accuracy {
		row.AtLeast = !metric.Loss
	}
	if c.AtLeast != row.AtLeast {
		r.differ(what+": atLeast", fmt.Sprint(c.AtLeast), fmt.Sprint(row.AtLeast))
		c.AtLeast = row.AtLeast
	}
	if want := baselineOf(c.Figure); c.Baseline != want {
		r.differ(what+": baseline", string(c.Baseline), string(want))
	}
	r.cases(what, row, c)
	if c.Figure == figure.KeptClasses {
		c.Limit = r.classes(what, c)
	}
	var verdict evidence.Verdict
	switch {
	case row.Subject == figure.Answers && !metric.Rate:
		verdict = r.resampled(what, metric, c)
	case row.Rate:
		verdict = r.counts(what, c)
	default:
		verdict = r.exact(what, row, c)
	}
	verdict = r.sameBits(what, c, verdict)
	if verdict != c.Verdict {
		r.differ(what+": verdict", string(c.Verdict), string(verdict))
	}
	return verdict
}

// sameBits gives the verdict of a check whose bounds decide nothing: a pass where the outputs of the report differ in no bit.
func (r *rejudgement) sameBits(what string, c evidence.Check, verdict evidence.Verdict) evidence.Verdict {
	differs := c.Misses == nil || *c.Misses != 0 || c.Won != nil && *c.Won != 0
	if c.Resampled {
		a := r.accuracyOf(c)
		differs = a == nil || a.Reference != a.Engine
		if f := r.counted(c); f != nil {
			differs = differs || !f.Same()
			if follows := f.Rarest().Cases; c.Identical > 0 && c.Rarest != follows {
				r.differ(what+": rarest", fmt.Sprint(c.Rarest), fmt.Sprint(follows))
			}
		}
	}
	identical := identicalOf(r.report.Outputs, r.report.Cases.Ran)
	by := c
	if by.Verdict = verdict; passesBySameBits(by, differs, identical) {
		verdict = evidence.VerdictPass
	} else {
		identical = 0
	}
	if c.Identical != identical {
		r.differ(what+": identical", fmt.Sprint(c.Identical), fmt.Sprint(identical))
	}
	return verdict
}

// cases compares the counts of a check with those that the report has elsewhere.
func (r *rejudgement) cases(what string, row figure.Row, c evidence.Check) {
	if row.Subject != figure.Answers {
		if _, ok := r.report.Outputs[c.Output]; !ok {
			r.differ(what, "output "+c.Output, "no such output in the report")
		}
		// Cases in which the output is empty, or has no rows to rank, do not count.
		if c.Cases < 0 || c.Cases > r.report.Cases.Ran {
			r.differ(what+": cases", fmt.Sprint(c.Cases), fmt.Sprintf("at most %d", r.report.Cases.Ran))
		}
		return
	}
	a, paired := r.accuracyOf(c), isDrop(c)
	if a == nil {
		r.differ(what, "a check", "no check: the report has no such accuracy")
		return
	}
	if c.Cases != a.Cases {
		r.differ(what+": cases", fmt.Sprint(c.Cases), fmt.Sprint(a.Cases))
	}
	if metric, err := accuracy.Find(a.Metric); err != nil || !metric.Rate {
		return
	}
	misses := evidence.Figure(a.Cases) - a.Right
	if paired || c.Figure == figure.Relative {
		misses = a.Lost
		r.same(what+": won", c.Won, float64(a.Won))
	}
	r.same(what+": misses", c.Misses, float64(misses))
}

// classes compares the counts of a check of classes with those of its output, and returns its limit, which no document changes.
func (r *rejudgement) classes(what string, c evidence.Check) *evidence.Figure {
	r.same(what+": limit", c.Limit, leastKept)
	if of := r.report.Outputs[c.Output].Classes; of == nil {
		r.differ(what, "a check", "no check: the output has no classes")
	} else {
		r.same(what+": misses", c.Misses, float64(of.Lost))
		r.same(what+": cases", new(evidence.Figure(c.Cases)), float64(of.Cases))
	}
	return figureOf(leastKept)
}

// same compares an optional figure with what it has to be.
func (r *rejudgement) same(what string, said *evidence.Figure, follows float64) bool {
	if said == nil {
		r.differ(what, "nothing", number(follows))
		return false
	}
	if v := float64(*said); !near(v, follows) {
		r.differ(what, number(v), number(follows))
		return false
	}
	return true
}

// near reports whether two figures are the same on two machines; NaN is near NaN.
func near(a, b float64) bool {
	if a == b || math.IsNaN(a) && math.IsNaN(b) {
		return true
	}
	return !math.IsInf(a, 0) && !math.IsInf(b, 0) && math.Abs(a-b) <= boundTolerance*max(1, min(math.Abs(a), math.Abs(b)))
}

func number(v float64) string { return fmt.Sprintf("%.10g", v) }

// exact judges a limit that must hold for every case that ran.
func (r *rejudgement) exact(what string, row figure.Row, c evidence.Check) evidence.Verdict {
	if output, ok := r.report.Outputs[c.Output]; ok && c.Figure != figure.Elements {
		r.same(what+": value", &c.Value, float64(output.Figure(c.Figure)))
	}
	switch c.Figure {
	case figure.Elements:
		c.Limit = figureOf(0) // none may fail
	case figure.Groups:
		r.same(what+": limit", c.Limit, 0)
		c.Limit = figureOf(0)
	}
	if !row.Keeps(float64(c.Value), float64(c.LimitValue())) {
		return evidence.VerdictFail
	}
	if !row.Overall {
		r.same(what+": proves", c.Proves, stats.UpperRate(0, c.Cases, float64(r.report.Confidence)))
	}
	return evidence.VerdictPass
}

// counts judges a limit on a share of cases, on a drop or on a share of the reference's answers, by the counts.
func (r *rejudgement) counts(what string, c evidence.Check) evidence.Verdict {
	a := r.accuracyOf(c)
	switch {
	case c.Figure == figure.Relative && a == nil:
		return evidence.VerdictUndecided
	case c.Figure == figure.Relative: // which follows from the accuracy
		c.Misses = &a.Lost
	case isDrop(c) && (c.Misses == nil || c.Won == nil):
		r.differ(what, "no counts", "misses and won: the bounds follow from them")
		return evidence.VerdictUndecided
	case isDrop(c) && !(isCount(*c.Misses, c.Cases) && isCount(*c.Won, c.Cases)):
		r.differ(what+": misses and won", number(float64(*c.Misses))+" and "+number(float64(*c.Won)), "counts from 0 to the number of cases")
		return evidence.VerdictUndecided
	case c.Misses == nil:
		r.differ(what+": misses", "nothing", "a count: the bounds follow from it")
		return evidence.VerdictUndecided
	}
	value, low, high := bounded(c, a, float64(r.report.Confidence))
	r.same(what+": value", &c.Value, value)
	c.Low, c.High = figureOf(r.bound(what+": low", c.Low, low)), figureOf(r.bound(what+": high", c.High, high))
	return decide(c)
}

func isCount(v evidence.Figure, cases int) bool { return v >= 0 && v <= evidence.Figure(cases) }

// accuracyOf is the accuracy that a check is about; nil where the report has none.
func (r *rejudgement) accuracyOf(c evidence.Check) *evidence.Accuracy {
	switch {
	case c.Slice != "":
		for i := range r.report.Slices {
			if s := &r.report.Slices[i]; s.Value == c.Slice {
				return &s.Accuracy
			}
		}
		return nil
	case c.Figure == figure.Regression && r.report.Current == nil:
		return nil
	case c.Figure == figure.Regression:
		return &r.report.Current.Accuracy
	}
	return r.report.Accuracy
}

// metric is the name of the metric of accuracy.
func (r *rejudgement) metric() string {
	if r.report.Accuracy == nil {
		return MetricTop1 // its checks are of no accuracy, which is said elsewhere
	}
	return r.report.Accuracy.Metric
}

// resampled judges a limit on a metric that is no rate, by bounds that follow from the per-case figures, or else
// by those that the report has.
func (r *rejudgement) resampled(what string, m accuracy.Metric, c evidence.Check) evidence.Verdict {
	a := r.accuracyOf(c)
	if a == nil {
		return evidence.VerdictUndecided
	}
	if !c.Resampled || c.Low == nil || c.High == nil {
		r.differ(what, "no bounds", "bounds by a bootstrap: "+m.Name+" has no others")
		return evidence.VerdictUndecided
	}
	reference, engine := float64(a.Reference), float64(a.Engine)
	follows := valueOf(c, m, reference, engine)
	r.same(what+": value", &c.Value, follows)
	worse, better := float64(*c.High), float64(*c.Low)
	if f := r.counted(c); f != nil {
		b := boundsOfCheck(c, *f, float64(r.report.Confidence))
		r.same(what+": value", &c.Value, b.Value)
		worse, better = r.bound(what+": high", c.High, b.High), r.bound(what+": low", c.Low, b.Low)
	} else {
		r.found.Taken++
	}
	switch {
	case none(reference) || none(engine): // which decides, whatever the bounds are
	case math.IsNaN(follows):
		return evidence.VerdictUndecided
	case !between(better, float64(c.Value), worse):
		r.differ(what+": bounds", number(better)+" to "+number(worse), "bounds on both sides of "+number(float64(c.Value)))
		return evidence.VerdictUndecided
	}
	if c.AtLeast {
		worse, better = better, worse
	}
	return limit{float64(c.LimitValue()), c.AtLeast, true}.decide(reference, engine, worse, better)
}

// valueOf returns what a check of accuracy is about; NaN for a ratio to nothing, or to less.
func valueOf(c evidence.Check, m accuracy.Metric, reference, engine float64) float64 {
	switch {
	case (c.Figure == figure.Relative || isDrop(c) && m.Loss) && !(reference > 0):
		return math.NaN()
	case c.Figure == figure.Relative && m.Loss:
		return reference / engine
	case c.Figure == figure.Relative:
		return engine / reference
	case isDrop(c) && m.Loss:
		return engine/reference - 1
	case isDrop(c):
		return reference - engine
	}
	return engine
}

// between reports whether a value is within its bounds, but for the last digits.
func between(low, value, high float64) bool {
	if math.IsInf(value, 0) {
		return low <= value && value <= high
	}
	tolerance := boundTolerance * max(1, math.Abs(value))
	return low <= value+tolerance && value-tolerance <= high
}

// bound compares a bound and returns the one to judge by: that of the report where it is the same
// but for the last digits, which differ between processors.
func (r *rejudgement) bound(what string, said *evidence.Figure, follows float64) float64 {
	if r.same(what, said, follows) {
		return float64(*said)
	}
	return follows
}

// fold gives the verdict of the report from the verdicts of its checks, from its consistency checks, and from
// the reasons that no check has.
func (r *rejudgement) fold(checks []evidence.Verdict) {
	report := r.report
	var found Findings
	add := func(is bool, verdict evidence.Verdict) {
		if is {
			found = append(found, Finding{Verdict: verdict})
		}
	}
	for _, v := range checks {
		add(v != evidence.VerdictPass, v)
	}
	add(r.failsBeside(), evidence.VerdictFail)
	// What has no counts, such as another shape, is as the report says.
	others := r.hasOtherReasons()
	add(others && r.said == evidence.VerdictFail, evidence.VerdictFail)
	add(others || len(checks) == 0 || report.Cases.Ran < 1 || report.Cases.Ran != report.Cases.Count, evidence.VerdictUndecided)
	if r.found.Verdict, _ = found.Verdict(); r.found.Verdict != r.said {
		r.differ("verdict", string(r.said), string(r.found.Verdict))
	}
	if r.said == evidence.VerdictPass && len(report.Reasons) > 0 {
		r.differ("reasons", registry.Count(len(report.Reasons), "reason"), "none: it says that it passed")
	}
}

// failsBeside reports whether something failed for which there is no check.
func (r *rejudgement) failsBeside() bool {
	for _, o := range r.report.Outputs {
		if o.NewNaN > 0 || o.NewInf > 0 {
			return true
		}
	}
	return slices.ContainsFunc(r.report.Checks.Beyond(), func(c evidence.Check) bool { return c.Verdict == evidence.VerdictFail })
}
