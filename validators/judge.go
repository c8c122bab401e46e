package validators

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/figure"
	"mlpromote.dev/mlpromote/validators/accuracy"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// The codes of reasons.
const (
	ReasonLimit       = "limit_exceeded"
	ReasonAccuracy    = "accuracy_drop"
	ReasonShape       = "shape"
	ReasonNewNaN      = "new_nan"
	ReasonNewInf      = "new_inf"
	ReasonTooFewCases = "too_few_cases"
	ReasonNotRun      = "not_run"
	ReasonLatency     = "latency"
	ReasonRegression  = "latency_regression"
)

// Tolerance is what counts an element as failed.
func (o OutputLimits) Tolerance() tensor.Options {
	return tensor.Options{RTol: value(o.RTol), ATol: value(o.ATol)}
}

// Comparison is how an output is compared for these limits. Fill values are left out. Scores, whose order counts, can be masked by a number that is added to them.
func (o OutputLimits) Comparison(output TensorInfo) tensor.Options {
	options := o.Tolerance()
	options.Channels, options.Systematic, options.Quarters = o.perChannel(), o.Systematic != nil, o.QuarterError != nil
	options.Fills = tensor.FillsEqual
	if o.Top1 != nil {
		options.Fills = tensor.FillsNear
	}
	options.Ranks, options.Bounded = output.Ranks(), output.Kind == KindProbability
	if o.Where == "" { // what is left of a mask has other dimensions
		options.ClassAxis, _ = output.ClassAxis()
	}
	return options
}

func value(v *float64) float64 {
	if v == nil {
		return 0
	}
	return *v
}

// Measured is what was measured of an engine.
type Measured struct {
	Outputs  map[string]tensor.Result // over all cases
	Accuracy *evidence.Accuracy       // nil without labels
	Figures  *accuracy.Figures        // of Accuracy; nil for a rate of cases
	// AccuracyFault is why accuracy was not measured although there are labels; empty if it was.
	AccuracyFault string
	// Current is the accuracy of the engine that the destination has now, in place of the
	// reference's, and of this one; nil where there is none. CurrentFault is why it is not known.
	Current      *evidence.Accuracy
	CurrentFault string
	// CurrentFigures are those of Current; nil for a rate of cases.
	CurrentFigures *accuracy.Figures
	Slices         []accuracy.Slice // where the limits ask for them
	Cases          int              // that ran
	// Whole is what was measured of this engine over all cases, where Outputs are of some of them.
	Whole map[string]tensor.Result
	// OtherSizes says that these cases have other sizes than all.
	OtherSizes bool
	Attempts   int // how often the engine was judged by these limits and cases, this time included; 0 means 1
	// Sides are what messages call the reference and the engine. The zero Sides are those.
	Sides Sides
}

// Sides are the names of the two that are compared, each with its article.
type Sides struct{ Reference, Engine string }

func (s Sides) named() Sides {
	return Sides{cmp.Or(s.Reference, "the reference"), cmp.Or(s.Engine, "the engine")}
}

// Judgement is what limits say of an engine.
type Judgement struct {
	Verdict evidence.Verdict
	Reasons []evidence.Reason // why it is no pass
	Found   Findings          // what both follow from
	// Checks are all limits with what was measured; Confidence is the
	// level of their bounds.
	Checks     evidence.Checks
	Confidence float64
	Slices     []evidence.SliceAccuracy // with their bounds
}

// Judge gives the verdict on an engine of a precision. What exceeds a limit fails. What was not
// measured and has a limit is undecided, and so is what the cases cannot prove.
func (l Limits) Judge(precision string, m Measured) Judgement {
	j := judgement{confidence: l.confidence(m.Attempts), cases: m.Cases, least: l.MinCases, identical: identical(m.Outputs), names: m.Sides.named()}
	if m.Cases < l.MinCases {
		j.undecided(evidence.Reason{Code: ReasonTooFewCases,
			Message: fmt.Sprintf("%s ran, the limits ask for at least %d", registry.Count(m.Cases, "case"), l.MinCases)})
	}
	limits := l.Precisions[precision].Outputs
	if len(limits) == 0 {
		j.undecided(evidence.Reason{Code: ReasonNotRun,
			Message: fmt.Sprintf("the release has no limits for precision %s", precision)})
	}
	for _, name := range slices.Sorted(maps.Keys(m.Outputs)) {
		if _, limited := limits[name]; !limited {
			j.undecided(evidence.Reason{Code: ReasonNotRun, Output: name, Message: fmt.Sprintf("the release has no limits on output %s", name)})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(limits)) {
		result, ok := m.Outputs[name]
		if !ok || result.Cases < m.Cases {
			j.undecided(evidence.Reason{Code: ReasonNotRun, Output: name,
				Message: fmt.Sprintf("output %s was not compared on all cases", name)})
			continue
		}
		if where := limits[name].Where; where != "" && result.Elements == 0 {
			j.undecided(evidence.Reason{Code: ReasonNotRun, Output: name,
				Message: fmt.Sprintf("no element of output %s counted: input %s is 0 everywhere", name, where)})
			continue
		}
		j.output(name, limits[name], result)
	}
	j.accuracy(l.Accuracy, m)
	return j.judgement()
}

// judgement collects findings and checks.
type judgement struct {
	found      Findings
	checks     evidence.Checks
	confidence float64
	cases      int // that ran
	least      int // cases that the limits ask for
	names      Sides
	slices     []evidence.SliceAccuracy
	full       int // of them, those in which the output at hand has elements
	identical  int // of them, if no float output differs in a bit in any, and there are enough; else 0
}

func (j *judgement) undecided(r evidence.Reason) {
	j.found = append(j.found, Finding{evidence.VerdictUndecided, r})
}

func (j *judgement) fail(r evidence.Reason) {
	j.found = append(j.found, Finding{evidence.VerdictFail, r})
}

// judgement is what was found.
func (j *judgement) judgement() Judgement {
	verdict, reasons := j.found.Verdict()
	return Judgement{verdict, reasons, j.found, j.checks, j.confidence, j.slices}
}

// finite fails what is NaN or infinite where the reference is not.
func (j *judgement) finite(name string, r tensor.Result) {
	if r.NewNaN > 0 {
		j.fail(evidence.Reason{Code: ReasonNewNaN, Output: name, Figure: "newNaN", Value: evidence.Figure(r.NewNaN),
			Message: fmt.Sprintf("output %s has %d NaN where %s has none", name, r.NewNaN, j.names.Reference)})
	}
	if r.NewInf > 0 {
		j.fail(evidence.Reason{Code: ReasonNewInf, Output: name, Figure: "newInf", Value: evidence.Figure(r.NewInf),
			Message: fmt.Sprintf("output %s has %s where %s has none", name, registry.Count(r.NewInf, "infinity", "infinities"), j.names.Reference)})
	}
}

// sayNonFinite adds to the reasons about a figure which NaN or infinity it comes from: a cosine of
// 0, say, can have other causes.
func (s Sides) sayNonFinite(found Findings, r tensor.Result) {
	if r.Worst == nil || !math.IsInf(r.Worst.Excess, 1) {
		return
	}
	for i, f := range found {
		if f.Reason.Code == ReasonLimit && f.Reason.Figure != figure.Elements {
			found[i].Reason.Message += fmt.Sprintf("; in case %d at %v %s is %g and %s %g",
				r.Worst.Case, r.Worst.Index, s.Reference, r.Worst.Reference, s.Engine, r.Worst.Engine)
		}
	}
}

// sayQuarter adds to the reason about a quarter of the values which one it is.
func sayQuarter(found Findings, r tensor.Result) {
	for i, f := range found {
		if f.Reason.Figure == figure.QuarterError && r.Quarters != nil {
			q := r.Quarters.Worst()
			found[i].Reason.Message += fmt.Sprintf("; from %.3g to %.3g, where values are off by %.3g %% on average", q.From, q.To, 100*q.Relative)
		}
	}
}

// sayOffset adds to the reason about systematic errors where they are.
func sayOffset(found Findings, r tensor.Result) {
	for i, f := range found {
		if f.Reason.Figure != figure.Systematic || f.Reason.Code != ReasonLimit {
			continue
		}
		where := "all values"
		if r.SystematicAt >= 0 {
			where = fmt.Sprintf("value %d of each row", r.SystematicAt)
		}
		how := "scaled or bent"
		switch {
		case r.Offset > 0:
			how = fmt.Sprintf("%.3g too high on average", r.Offset)
		case r.Offset < 0:
			how = fmt.Sprintf("%.3g too low on average", -r.Offset)
		}
		found[i].Reason.Message += fmt.Sprintf("; %s: %s", where, how)
	}
}

func (j *judgement) tolerance(name string, tolerance tensor.Options, r tensor.Result) {
	reason := evidence.Reason{Code: ReasonLimit, Output: name, Figure: figure.Elements, Value: evidence.Figure(r.Failed),
		Message: fmt.Sprintf("output %s: %d of %d elements differ by more than %g + %g*|reference|",
			name, r.Failed, r.Elements, tolerance.ATol, tolerance.RTol)}
	if w := r.Worst; w != nil {
		reason.Case = w.Case
		reason.Message += fmt.Sprintf(", the worst in case %d at %v: %s %g, %s %g",
			w.Case, w.Index, strings.TrimPrefix(j.names.Reference, "the "), w.Reference, strings.TrimPrefix(j.names.Engine, "the "), w.Engine)
	}
	j.fail(reason)
}

func (j *judgement) exceeded(name, figure, phrase string, limit, measured float64, worst int, how string) {
	message := fmt.Sprintf("output %s: %s is %.6g, %s the limit of %g", name, phrase, measured, how, limit)
	if worst >= 0 {
		message += fmt.Sprintf(" (case %d)", worst)
	}
	j.fail(evidence.Reason{Code: ReasonLimit, Output: name, Figure: figure,
		Limit: evidence.Figure(limit), Value: evidence.Figure(measured),
		Case: max(worst, 0), Message: message})
}
