package validators

import (
	"fmt"
	"maps"
	"slices"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/figure"
	"mlpromote.dev/mlpromote/validators/stats"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// What an engine gives for a case may differ, when it runs the case again, by a part of what it is off
// from the reference: half in one process, where runtimes usually give the same bits, and the root of
// two in a batch or another process, where they may choose other kernels. So far apart are two
// quantizations of the same size whose errors have nothing in common: activations that are quantized by
// the range of the batch make up to 0.8 of the engine's own error. A tenth of what the limits allow is
// always granted, but of answers none in one process, unless the engine misses some itself.
const (
	noiseInProcess = -6.02 // dB
	noiseElsewhere = 3.0
	granted        = 20
)

// JudgeAgain gives a reason for each output that differs by too much between runs of the same cases:
// found is what differs, and whole is what the engine is off from the reference over all cases. It
// gives none for other kinds of checks, nor for outputs of which nothing was compared.
func (l Limits) JudgeAgain(kind evidence.Trial, precision string, found, whole map[string]tensor.Result) []evidence.Reason {
	trial := TrialOf(kind)
	jitter := l.Consistency != nil && l.Consistency.Jitter == JitterLimits && trial.SameCases
	if jitter || !trial.Again {
		return nil
	}
	var reasons []evidence.Reason
	limits := l.Precisions[precision].Outputs
	for _, name := range slices.Sorted(maps.Keys(limits)) {
		own, ok := whole[name]
		if !ok {
			continue
		}
		if limit := limits[name].SNRdB; limit != nil && found[name].Elements > 0 {
			least := min(own.SpreadSNR-trial.Noise, limit.Min+granted)
			if got := found[name].SpreadSNR; !(got >= least) {
				reasons = append(reasons, evidence.Reason{Code: ReasonLimit, Output: name, Figure: figure.SNR,
					Limit: evidence.Figure(least), Value: evidence.Figure(got), Message: fmt.Sprintf(
						"output %s: what differs has a signal to noise ratio of %.3g dB, and the engine's own error %.3g dB: want at least %.3g dB",
						name, got, own.SpreadSNR, least)})
			}
		}
		for _, f := range answersOf(limits[name], found[name], own) {
			if r, ok := l.judgeAnswers(trial, name, f); !ok {
				reasons = append(reasons, r)
			}
		}
	}
	return reasons
}

// An answersAgain is how many answers differ between two runs, and from the reference's, each a sum over
// cases of the share of a case.
type answersAgain struct {
	figure          string
	limit           float64 // on the share of equal answers
	differ, missed  float64
	cases, ownCases int
}

// answersOf lists the answers that limits bound.
func answersOf(o OutputLimits, found, own tensor.Result) (all []answersAgain) {
	for _, row := range figure.OfOutputs() {
		limit, there := o.Bound(row)
		missed, ownCases := own.Misses(row.Name)
		if !there || !row.Rate || row.Whole || row.ZeroIsNone && limit == 0 || ownCases == 0 {
			continue
		}
		differ, cases := found.Misses(row.Name)
		all = append(all, answersAgain{row.Name, limit, differ, missed, cases, ownCases})
	}
	return all
}

// judgeAnswers holds the answers that differ to those of the engine that are not the reference's, as
// errors are held to its own error: by the lower bound of their share, and in one process also by
// their number.
func (l Limits) judgeAnswers(trial TrialRow, output string, a answersAgain) (evidence.Reason, bool) {
	own := a.missed / float64(a.ownCases)
	allowed := max(2*own, (1-a.limit)/10)
	if trial.InProcess {
		allowed = max(own/2, (1-a.limit)/10)
	}
	differs := stats.LowerRate(a.differ, a.cases, 1-(1-l.Confidence)/someTries)
	if differs <= allowed && !(trial.InProcess && a.differ > a.missed) {
		return evidence.Reason{}, true
	}
	value := a.differ / float64(max(a.cases, 1))
	return evidence.Reason{Code: ReasonLimit, Output: output, Figure: a.figure, Limit: evidence.Figure(1 - allowed), Value: evidence.Figure(1 - value),
		Message: fmt.Sprintf("output %s: %s: %.4g of %s give other answers between runs, and %.4g of %s another than the reference: that is more than its own errors explain",
			output, a.figure, a.differ, registry.Count(a.cases, "case"), a.missed, registry.Count(a.ownCases, "case"))}, false
}
