package pipeline

import (
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/pipeline/consistency"
	"mlpromote.dev/mlpromote/registry"
)

// hintThreads adds to the failures of engines, in their order, that threads of llama.cpp wait for one another without sleeping, so that
// a machine that does other work runs them many times slower, and what keeps it from that.
func (v verification) hintThreads(engines []VerifiedEngine, failures []error) {
	const option = "n_threads"
	for i, c := range v.candidates {
		if failures[i] == nil || c.tool.Profile.Name != llamaCPP || !slices.ContainsFunc(engines[i].Parity.Consistency, late) {
			continue
		}
		if load := c.engine.Load; load != nil && load.Options[option] != "" {
			continue
		}
		failures[i] = registry.WithHint(failures[i],
			"%s: %s takes many times as long on a machine that does other work: write load: {options: {%s: 1}} in its target (docs/toolchains.md#llama-cpp)",
			c.engine.Label(), llamaCPP, option)
	}
}

// late reports whether a check did not begin or did not end for want of time.
func late(check registry.ConsistencyCheck) bool {
	return check.Verdict == registry.VerdictUndecided &&
		(strings.Contains(check.Message, consistency.ErrStopped.Error()) || strings.Contains(check.Message, consistency.ErrNoTime.Error()))
}
