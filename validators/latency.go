package validators

import (
	"fmt"
	"math"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/validators/stats"
)

// The codes of reasons about machines.
const (
	// ReasonUnfit is of a machine whose own noise is more than a limit allows, or that did other
	// things while it measured.
	ReasonUnfit = "unfit"
	// ReasonEmulated is of times that are not those of the target.
	ReasonEmulated = "emulated"
)

const (
	// mostSteal is the share of the wanted time of processors that may go to other virtual machines
	// while latency is measured, for a limit to be decided.
	mostSteal = 0.05
	// mostChange is how far the frequency of the processors may change meanwhile, as a share.
	mostChange = 0.2
)

// tailPercentile is the percentile that LatencyLimits.P99 bounds.
const tailPercentile = 0.99

// TailRuns is how many runs it takes to show that a limit on the 99th percentile holds if so many of
// them are above it, by [stats.EarlyStopping].
func (l Limits) TailRuns(over int) int {
	under := stats.EarlyStopping(over, tailPercentile, l.Confidence)
	if under > math.MaxInt-over {
		return math.MaxInt
	}
	return under + over
}

// JudgeLatency judges the time of single runs: a
// limit holds if the upper bound of the figure does, fails if the lower bound does not, and else
// is not decided. ratio is nil where there is no engine to compare with, or fault says why it is
// not known.
//
// An emulator decides nothing. A machine that was not fit, by what was measured of it, makes no
// engine fail: other work on it only takes time, so a limit that is kept all the same is kept. In a
// comparison it meets both engines alike, and the bounds contain what it changes.
func (l Limits) JudgeLatency(engine evidence.Latency, ratio *evidence.LatencyRatio,
	fault string, fitness evidence.Fitness) Findings {
	limits := l.Latency
	if limits == (LatencyLimits{}) {
		return Findings{{Verdict: evidence.VerdictRecorded}}
	}
	if fitness.Emulated != "" {
		return Undecided(evidence.Reason{Code: ReasonEmulated, Message: "no limit on latency is decided here: " + fitness.Emulated})
	}
	found := l.judgeTimes(engine, ratio, fault)
	why := unfit(fitness)
	if why == "" || len(found) == 0 {
		return found
	}
	for i, f := range found {
		found[i].Verdict = evidence.VerdictUndecided
		if f.Reason.Code == ReasonLatency || f.Reason.Code == ReasonRegression {
			found[i].Reason.Code = ReasonUnfit
		}
	}
	return append(found, Undecided(evidence.Reason{Code: ReasonUnfit, Message: why + ": verify on a machine with less to do"})...)
}

// unfit says why a machine is not fit to decide, or nothing.
func unfit(f evidence.Fitness) string {
	if f.Steal != nil && !(float64(*f.Steal) <= mostSteal) {
		return fmt.Sprintf("the machine is unfit: other virtual machines had %.1f %% of the time that its processors wanted, at most %.0f %% is fit",
			100*float64(*f.Steal), 100*mostSteal)
	}
	low, high := float64(min(f.MHzBefore, f.MHzAfter)), float64(max(f.MHzBefore, f.MHzAfter))
	if low > 0 && high > low*(1+mostChange) {
		return fmt.Sprintf("the machine is unfit: the frequency of its processors went from %d to %d MHz, by more than %.0f %%",
			f.MHzBefore, f.MHzAfter, 100*mostChange)
	}
	return ""
}

func (l Limits) judgeTimes(engine evidence.Latency, ratio *evidence.LatencyRatio, fault string) Findings {
	limits := l.Latency
	var j judgement
	if b := engine.Bounds; engine.Samples == 0 || b == nil {
		j.undecided(evidence.Reason{Code: ReasonNotRun, Message: "latency was not measured"})
	} else {
		j.within("p50", limits.P50, engine.P50Ns, b.P50LowNs, b.P50HighNs, engine)
		j.within("p99", limits.P99, engine.P99Ns, b.P99LowNs, b.P99HighNs, engine)
		if b.Over != nil && limits.P99 != nil && !(b.P99HighNs > 0 && b.P99HighNs <= limits.P99.MaxNs.Nanoseconds()) {
			j.tail(l.TailRuns(*b.Over), engine)
		}
	}
	if limits.Regression != nil {
		j.ratio(limits.Regression.Max, ratio, fault)
	}
	return j.found
}

// within checks a quantile by its bounds; an upper bound of 0 is none.
func (j *judgement) within(figure string, limit *TimeAtMost, value, low, high int64, engine evidence.Latency) {
	if limit == nil {
		return
	}
	most := limit.MaxNs.Nanoseconds()
	reason := evidence.Reason{Figure: figure, Limit: evidence.Figure(most), Value: evidence.Figure(value)}
	said := fmt.Sprintf("%s is %s in %s", figure, milliseconds(value), registry.Count(engine.Samples, "run"))
	level := share(float64(engine.Bounds.Confidence))
	switch {
	case high > 0 && high <= most:
	case low > most:
		reason.Code = ReasonLatency
		reason.Message = fmt.Sprintf("%s, with %s confidence at least %s; the limit is %s", said, level, milliseconds(low), milliseconds(most))
		j.fail(reason)
	case high == 0:
		reason.Code = ReasonNotEnough
		reason.Message = fmt.Sprintf("%s, too few for a bound; the limit is %s", said, milliseconds(most))
		j.undecided(reason)
	default:
		reason.Code = ReasonNotEnough
		reason.Message = fmt.Sprintf("%s, with %s confidence at most %s, and the limit is %s: verify on a machine with less to do, or allow more",
			said, level, milliseconds(high), milliseconds(most))
		j.undecided(reason)
	}
}

// tail adds to the last reason, which is about the 99th percentile, how many runs would be enough.
func (j *judgement) tail(runs int, engine evidence.Latency) {
	over := *engine.Bounds.Over
	if last := &j.found[len(j.found)-1].Reason; last.Code == ReasonNotEnough && runs < math.MaxInt {
		last.Message += fmt.Sprintf("; with %s above the limit it takes %d to show that it holds (verify --latency-time)",
			registry.Count(over, "run"), runs)
	}
}

func milliseconds(ns int64) string { return fmt.Sprintf("%.3f ms", float64(ns)/1e6) }

// ratio checks how much slower the engine is than the one that it would replace.
func (j *judgement) ratio(limit float64, r *evidence.LatencyRatio, fault string) {
	reason := evidence.Reason{Figure: "p50", Limit: evidence.Figure(limit)}
	switch {
	case fault != "":
		reason.Code, reason.Message = ReasonNotRun, "the latency of the engine that the destination has now is not known: "+fault
		j.undecided(reason)
		return
	case r == nil:
		return
	}
	reason.Value = r.Ratio - 1
	said := fmt.Sprintf("p50 is %.1f %% slower than that of the engine there now", 100*reason.Value)
	level := share(float64(r.Confidence))
	noise := math.Max(float64(r.SameHigh)-1, 1-float64(r.SameLow))
	switch {
	case float64(r.High) <= 1+limit:
	case float64(r.Low) > 1+limit:
		reason.Code = ReasonRegression
		reason.Message = fmt.Sprintf("%s, with %s confidence at least %.1f %%; the limit is %.1f %%", said, level, 100*(float64(r.Low)-1), 100*limit)
		j.fail(reason)
	case !(noise <= limit):
		reason.Code = ReasonUnfit
		reason.Message = fmt.Sprintf("%s, and the limit is %.1f %%, but this machine cannot tell: the engine differs from itself by up to %.1f %%: "+
			"verify on a machine with less to do",
			said, 100*limit, 100*noise)
		j.undecided(reason)
	default:
		reason.Code = ReasonNotEnough
		reason.Message = fmt.Sprintf("%s, with %s confidence at most %.1f %%, and the limit is %.1f %%", said, level, 100*(float64(r.High)-1), 100*limit)
		j.undecided(reason)
	}
}
