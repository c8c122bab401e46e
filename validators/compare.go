package validators

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/figure"
	"mlpromote.dev/mlpromote/registry/policy"
)

// Documents are what a release promises: its limits, and the interface of its engines.
type Documents struct {
	Limits    Limits
	Interface Interface
	Engines   []artifact.Engine // of which the precisions count
}

// Compare says how what a release promises differs from what the release that it replaces does: each
// limit that is looser, and each difference of the interface that a caller would notice. Where two
// limits cannot be compared, as those of a precision or a metric that the other release does not
// have, that counts as looser. Version is left to the caller.
func Compare(now, was Documents) policy.Comparison {
	return policy.Comparison{Looser: looser(now, was),
		Interface: append(now.Interface.Breaks(was.Interface), dropped(now.Engines, was.Engines)...)}
}

// loosening collects limits that are looser, each in words that say where, what it is and what it was.
type loosening struct{ lines []string }

func (l *loosening) add(where, format string, args ...any) {
	l.lines = append(l.lines, where+": "+fmt.Sprintf(format, args...))
}

// looser lists the limits of a release that allow more than those of another.
func looser(now, was Documents) []string {
	var l loosening
	for _, precision := range precisions(now.Engines) {
		before, ok := was.Limits.Precisions[precision]
		if !ok || !slices.Contains(precisions(was.Engines), precision) {
			l.add(precision, "no engine had this precision")
			continue
		}
		for _, output := range was.Interface.Outputs {
			has, ok := now.Limits.For(precision, output.Name)
			switch had, limited := before.Outputs[output.Name]; {
			case !limited:
			case !ok:
				l.add(precision, "no limits on output %s, had some", output.Name)
			default:
				l.output(precision+", output "+output.Name, has, had)
			}
		}
	}
	if now.Limits.MinCases < was.Limits.MinCases {
		l.add("min_cases", "%d, was %d", now.Limits.MinCases, was.Limits.MinCases)
	}
	if now.Limits.Confidence < was.Limits.Confidence {
		l.add("confidence", "%v, was %v", now.Limits.Confidence, was.Limits.Confidence)
	}
	l.consistency(now.Limits.Consistency, was.Limits.Consistency)
	l.accuracy(now, was)
	l.latency(now.Limits.Latency, was.Limits.Latency)
	return l.lines
}

// precisions lists those of the engines, each once.
func precisions(engines []artifact.Engine) []string {
	var all []string
	for _, e := range engines {
		all = append(all, e.Precision)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func (l *loosening) output(where string, now, was OutputLimits) {
	if now.Where != was.Where { // fewer elements count, or padding does that hides what the others have
		l.add(where, "elements by %q count, was %q", now.Where, was.Where)
	}
	if now.perChannel() != was.perChannel() {
		l.add(where, "per_channel %v, was %v", now.perChannel(), was.perChannel())
	}
	if was.RTol != nil || was.ATol != nil {
		switch {
		case now.RTol == nil && now.ATol == nil:
			l.add(where, "rtol and atol not limited, were %v and %v", tolerance(was.RTol), tolerance(was.ATol))
		case tolerance(now.RTol) > tolerance(was.RTol) || tolerance(now.ATol) > tolerance(was.ATol):
			l.add(where, "rtol %v and atol %v, were %v and %v", tolerance(now.RTol), tolerance(now.ATol), tolerance(was.RTol), tolerance(was.ATol))
		}
	}
	for _, row := range figure.OfOutputs() {
		limit, there := now.Bound(row)
		before, had := was.Bound(row)
		switch {
		case !had:
		case !there:
			l.add(where, "%s not limited, was at %s %v", row.Key, boundWord(row.AtLeast), before)
		case !row.Keeps(limit, before):
			l.add(where, "%s at %s %v, was %v", row.Key, boundWord(row.AtLeast), limit, before)
		}
	}
}

// boundWord is what a limit is the "at least" or "at most" of.
func boundWord(atLeast bool) string {
	if atLeast {
		return "least"
	}
	return "most"
}

// tolerance is 0 where it is absent, beside one that is there.
func tolerance(limit *float64) float64 {
	if limit == nil {
		return 0
	}
	return *limit
}

func (l *loosening) least(where, figure string, now, was *AtLeast) {
	switch {
	case was == nil:
	case now == nil:
		l.add(where, "%s not limited, was at least %v", figure, was.Min)
	case !(now.Min >= was.Min):
		l.add(where, "%s at least %v, was %v", figure, now.Min, was.Min)
	}
}

func (l *loosening) most(where, figure string, now, was *AtMost) {
	switch {
	case was == nil:
	case now == nil:
		l.add(where, "%s not limited, was at most %v", figure, was.Max)
	case !(now.Max <= was.Max):
		l.add(where, "%s at most %v, was %v", figure, now.Max, was.Max)
	}
}

func (l *loosening) consistency(now, was *ConsistencyLimits) {
	if now == nil {
		now = &ConsistencyLimits{}
	}
	if was == nil {
		was = &ConsistencyLimits{}
	}
	allowed := []string{JitterNone, "", JitterLimits} // from the strictest
	if slices.Index(allowed, now.Jitter) > slices.Index(allowed, was.Jitter) {
		l.add("consistency", "jitter %q, was %q", now.Jitter, was.Jitter)
	}
	if was.Required && !now.Required {
		l.add("consistency", "not required, was")
	}
	if now.Rare < was.Rare {
		l.add("consistency", "rare %d, was %d", now.Rare, was.Rare)
	}
}

func (l *loosening) accuracy(next, current Documents) {
	now, was := next.Limits.Accuracy, current.Limits.Accuracy
	switch {
	case was == nil:
		return
	case now == nil:
		l.add("accuracy", "not limited, was by %s", was.Metric)
		return
	case now.Metric != was.Metric:
		l.add("accuracy", "metric %s, was %s", now.Metric, was.Metric)
		return
	}
	if of, had := next.scored(), current.scored(); of != had {
		l.add("accuracy", "of output %q, was %q", of, had)
	}
	if !reflect.DeepEqual(now.unbounded(), was.unbounded()) {
		l.add("accuracy", "measured in another way")
	}
	if by, before := detectedBy(now), detectedBy(was); by != before {
		l.add("accuracy", "of detections %q, was %q", by, before)
	}
	if now.Program != was.Program {
		l.add("accuracy", "program %s, was %s", now.Program, was.Program)
	}
	l.least("accuracy", "min", now.Min, was.Min)
	l.least("accuracy", "relative", now.Relative, was.Relative)
	l.most("accuracy", "max", now.Max, was.Max)
	l.most("accuracy", "drop", now.Drop, was.Drop)
	l.most("accuracy", "regression", now.Regression, was.Regression)
	switch {
	case was.Slices == nil:
	case now.Slices == nil:
		l.add("accuracy", "no slices, were by %s", was.Slices.By)
	case now.Slices.By != was.Slices.By:
		l.add("accuracy", "slices by %s, were by %s", now.Slices.By, was.Slices.By)
	default:
		where := "accuracy of slices by " + was.Slices.By
		l.least(where, "min", now.Slices.Min, was.Slices.Min)
		l.most(where, "max", now.Slices.Max, was.Slices.Max)
		l.most(where, "drop", now.Slices.Drop, was.Slices.Drop)
	}
}

// scored names the output that accuracy is measured on.
func (d Documents) scored() string {
	_, output, _, _ := d.Interface.Accuracy(d.Limits.Accuracy)
	return output.Name
}

// unbounded is how accuracy is measured beyond what has a line of its own: without bounds, outputs and
// program. A field that comes later counts from the first.
func (a AccuracyLimit) unbounded() AccuracyLimit {
	a.Min, a.Max, a.Drop, a.Regression, a.Relative, a.Slices = nil, nil, nil, nil, nil, nil
	a.Output, a.Detections, a.Program = "", nil, ""
	return a
}

// detectedBy names the outputs with detections; empty for a single output.
func detectedBy(a *AccuracyLimit) string {
	if a.Detections == nil {
		return ""
	}
	return strings.Join([]string{a.Detections.Boxes, a.Detections.Scores, a.Detections.Classes}, ", ")
}

func (l *loosening) latency(now, was LatencyLimits) {
	l.time("p50", now.P50, was.P50)
	l.time("p99", now.P99, was.P99)
	l.most("latency", "regression", now.Regression, was.Regression)
}

func (l *loosening) time(figure string, now, was *TimeAtMost) {
	switch {
	case was == nil:
	case now == nil:
		l.add("latency", "%s not limited, was at most %s", figure, was.MaxNs)
	case now.MaxNs > was.MaxNs:
		l.add("latency", "%s at most %s, was %s", figure, now.MaxNs, was.MaxNs)
	}
}
