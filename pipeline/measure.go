package pipeline

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators/performance"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// How latency is measured: single cases, one thread, all engines taking turns.
const (
	timingWarmup = 20
	timingCases  = 16              // at most: the first of the set
	timingBudget = 3 * time.Second // of runs of one engine, as far as the bounds of samples allow
	minSamples   = 32
	maxSamples   = 1024
	engineBatch  = 1
	timingShard  = "cases-00000.safetensors"
)

// measured is the timings of a run, by engine.
type measured struct {
	timings map[string][]int64
}

func (m measured) latency(id string) registry.Latency {
	return performance.Summarize(m.timings[id], engineBatch)
}

// median is the median time of a run of the slowest engine.
func (o runOutputs) median() time.Duration {
	var slowest int64
	for _, e := range o.engines {
		slowest = max(slowest, performance.Summarize(e.TimingsNS, engineBatch).P50Ns)
	}
	return time.Duration(slowest)
}

// measure times reference, candidates and what the next environment runs now. Those of
// one toolchain take turns in one process, so that what disturbs the machine disturbs
// all alike; the toolchains follow each other.
func (v *verification) measure(ctx context.Context, median time.Duration) (_ measured, err error) {
	inputs, cases, err := v.timingCases()
	if err != nil {
		return measured{}, err
	}
	rounds := rounds(cases, median)
	done := v.p.step(fmt.Sprintf("time %d engines, %d runs each", 1+len(v.candidates)+len(v.current), rounds*cases))
	var held []string
	defer func() { done("", err, held...) }()
	m := measured{timings: make(map[string][]int64)}
	for _, company := range v.tools.companies(slices.Concat(v.candidates, v.currents())) {
		run := company.tool.run(toolchain.RunOptions{Rounds: rounds, Warmup: timingWarmup, Order: toolchain.OrderInterleaved})
		run.job.Inputs = slices.Clone(inputs)
		if company.name == hub {
			run.add(referenceID, v.referenceModel)
		}
		for _, c := range company.members {
			run.addCandidate(c)
		}
		results, err := run.do(ctx, filepath.Join(v.scratch, "outputs-of-timing-"+company.name))
		if err != nil {
			return measured{}, err
		}
		held = append(held, run.held...)
		for _, e := range results {
			m.timings[e.ID] = e.TimingsNS
		}
	}
	return m, nil
}

// currents lists the engines that the next environment has, in a fixed order.
func (v *verification) currents() []candidate {
	var all []candidate
	for _, label := range slices.Sorted(maps.Keys(v.current)) {
		all = append(all, v.current[label])
	}
	return all
}

// rounds spends the budget on passes over the cases, within the bounds of samples.
func rounds(cases int, median time.Duration) int {
	samples := maxSamples
	if median > 0 {
		samples = min(max(int(timingBudget/median), minSamples), maxSamples)
	}
	return (samples + cases - 1) / cases
}

// timingCases cuts the first cases off the first shard.
func (v *verification) timingCases() ([]toolchain.Input, int, error) {
	first := v.cases.set.Shards[0]
	f, err := tensor.Open(filepath.Join(v.cases.dir, first.File), tensor.Limits{})
	if err != nil {
		return nil, 0, badTensors(first.File, err)
	}
	defer f.Close()
	n := min(first.Count, timingCases)
	rows := make(map[string]tensor.Tensor)
	for _, name := range f.Names() {
		if name == v.cases.set.Labels {
			continue
		}
		if rows[name], err = f.Rows(name, 0, int64(n)); err != nil {
			return nil, 0, badTensors(first.File, err)
		}
	}
	path := filepath.Join(v.scratch, timingShard)
	if err := writeShard(path, rows); err != nil {
		return nil, 0, err
	}
	input, err := toolchain.FileInput(toolchain.RoleCases, timingShard, path)
	return []toolchain.Input{input}, n, err
}
