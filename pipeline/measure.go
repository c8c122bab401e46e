package pipeline

import (
	"context"
	"fmt"
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
	current map[string]string // by label: the engine's id
}

func (m measured) latency(id string) registry.Latency {
	return performance.Summarize(m.timings[id], engineBatch)
}

// median is the median time of a run of the slowest engine.
func (o runOutputs) median() time.Duration {
	var slowest int64
	for _, e := range o.outcome.Engines {
		slowest = max(slowest, performance.Summarize(e.TimingsNS, engineBatch).P50Ns)
	}
	return time.Duration(slowest)
}

// measure times reference, candidates and what the next environment runs now,
// interleaved in one process, so that what disturbs the machine disturbs all alike.
func (v *verification) measure(ctx context.Context, median time.Duration) (measured, error) {
	inputs, cases, err := v.timingCases()
	if err != nil {
		return measured{}, err
	}
	engines := []toolchain.RunEngine{{ID: referenceID, Path: v.referenceModel.Name}}
	inputs = append(inputs, v.referenceModel)
	for i, c := range v.candidates {
		engines = append(engines, toolchain.RunEngine{ID: engineID(i), Path: c.model.Name})
		inputs = append(inputs, c.model)
	}
	m := measured{timings: make(map[string][]int64), current: make(map[string]string)}
	for label, model := range v.current {
		id := filepath.Dir(model.Name)
		m.current[label] = id
		engines = append(engines, toolchain.RunEngine{ID: id, Path: model.Name})
		inputs = append(inputs, model)
	}
	rounds := rounds(cases, median)
	done := v.p.step(fmt.Sprintf("time %d engines, %d runs each", len(engines), rounds*cases))
	outcome, err := v.tools.Timing.Do(ctx, toolchain.Job{Verb: toolchain.VerbRun, Inputs: inputs, Run: &toolchain.RunOptions{
		Engines: engines, Rounds: rounds, Warmup: timingWarmup, Order: toolchain.OrderInterleaved, Threads: runThreads, Level: runLevel,
	}}, filepath.Join(v.scratch, "outputs-of-timing"))
	done("", err)
	if err != nil {
		return measured{}, err
	}
	result, err := outcome.RunResult()
	for _, e := range result.Engines {
		m.timings[e.ID] = e.TimingsNS
	}
	return m, err
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
	return slices.Clone([]toolchain.Input{input}), n, err
}
