package tune

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"mlpromote.dev/mlpromote/pipeline/run"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/pipeline/verify"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators/performance"
)

// Candidates are timed in passes, so that an end in between leaves something.
const (
	timingPasses = 4
	tunedTime    = 3 * time.Second // of runs of one engine, as far as the bounds of samples allow
	tunedLeast   = 32
)

// time measures latencies: in each pass all candidates of a toolchain take turns, as far as
// there is time for passes.
func (t *tuning) time(ctx context.Context) error {
	inputs, cases, err := verify.TimingCases(t.verify)
	if err != nil {
		return err
	}
	timings := make(map[string][]int64)
	defer func() { t.summarize(timings) }()
	for pass := range timingPasses {
		if pass > 0 && t.spent(1) {
			return nil
		}
		if err := t.pass(ctx, pass, inputs, cases, timings); err != nil {
			return err
		}
	}
	return nil
}

// pass times every candidate once more, those of a toolchain in one process where they can.
func (t *tuning) pass(ctx context.Context, pass int, inputs []toolchain.Input,
	cases int, timings map[string][]int64) (err error) {
	distinct := t.distinct()
	ctx, done := t.env.Report().StepIn(ctx, fmt.Sprintf("time %s, pass %d of %d", registry.Count(len(distinct), "engine"), pass+1, timingPasses))
	defer func() { done("", err) }()
	for _, group := range t.Tools.RunGroups(distinct) {
		run := group.Tool.Run(toolchain.RunOptions{Rounds: t.passRounds(cases, timings),
			Warmup: verify.TimingWarmup, Order: toolchain.OrderInterleaved})
		run.Job.Inputs = slices.Clone(inputs)
		for _, c := range group.Members {
			run.AddCandidate(c)
		}
		results, err := run.Do(ctx, filepath.Join(t.Scratch, fmt.Sprintf("timing-%d-%s", pass, group.Name)))
		if err != nil {
			return err
		}
		for _, e := range results {
			timings[e.ID] = append(timings[e.ID], e.TimingsNS...)
		}
	}
	return nil
}

// distinct are the candidates, each once.
func (t *tuning) distinct() []run.Candidate {
	var all []run.Candidate
	for _, c := range t.tried {
		if !slices.ContainsFunc(all, func(have run.Candidate) bool { return have.ID == c.ID }) {
			all = append(all, c)
		}
	}
	return all
}

// passRounds are the rounds of one pass: those of a verification, shared between the
// passes; few as long as the time of a run is not known.
func (t *tuning) passRounds(cases int, timings map[string][]int64) int {
	var slowest time.Duration
	for _, ns := range timings {
		slowest = max(slowest, time.Duration(performance.Summarize(ns, verify.EngineBatch).P50Ns))
	}
	if slowest == 0 {
		return (tunedLeast + cases - 1) / cases
	}
	samples := min(max(int(tunedTime/slowest), tunedLeast), verify.MaxSamples)
	return max(1, (samples+cases-1)/cases/(timingPasses-1))
}

func (t *tuning) summarize(timings map[string][]int64) {
	for i, c := range t.tried {
		if ns := timings[c.ID]; len(ns) > 0 {
			latency := performance.Summarize(ns, verify.EngineBatch)
			t.result.Trials[i].Latency = &latency
		}
	}
}
