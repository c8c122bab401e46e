package validators

import (
	"fmt"
	"maps"
	"slices"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// What an engine gives for a case may differ, when it runs the case again, by a part of what it is off
// from the reference: half in one process, where runtimes usually give the same bits, and twice in a
// batch or another process, where they may choose other kernels. Quantizing activations by the range
// of the batch makes 0.4 to 0.9 of the engine's own error. A tenth of what the limits allow is always
// granted.
const (
	again     = -6.02 // dB
	elsewhere = 6.02
	granted   = 20
)

// JudgeAgain gives a reason for each output that differs by too much between runs of the same cases:
// found is what differs, and whole is what the engine is off from the reference over all cases. It
// gives none for other kinds of checks, nor by limits of version 1.
func (l Limits) JudgeAgain(kind registry.ConsistencyKind, precision string, found, whole map[string]tensor.Result) []registry.Reason {
	more := elsewhere
	switch kind {
	case registry.ConsistencyRepeat:
		more = again
	case registry.ConsistencyProcess, registry.ConsistencyBatch:
	default:
		return nil
	}
	jitter := l.Consistency != nil && l.Consistency.Jitter == JitterLimits && kind != registry.ConsistencyBatch
	if l.V == 1 || jitter {
		return nil
	}
	var reasons []registry.Reason
	limits := l.Precisions[precision].Outputs
	for _, name := range slices.Sorted(maps.Keys(limits)) {
		own, ok := whole[name]
		if limits[name].SNRdB == nil || !ok {
			continue
		}
		least := min(own.SpreadSNR-more, limits[name].SNRdB.Min+granted)
		if got := found[name].SpreadSNR; !(got >= least) {
			reasons = append(reasons, registry.Reason{Code: ReasonLimit, Output: name, Figure: "snrDb",
				Limit: registry.Figure(least), Value: registry.Figure(got), Message: fmt.Sprintf(
					"output %s: what differs has a signal to noise ratio of %.3g dB, and the engine's own error %.3g dB: want at least %.3g dB",
					name, got, own.SpreadSNR, least)})
		}
	}
	return reasons
}
