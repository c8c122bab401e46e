package pipeline

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"mlpromote.dev/mlpromote/pipeline/cases"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators/performance"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// How latency is measured: single cases, all engines taking turns, each loaded as a node loads it.
const (
	timingWarmup = 20
	timingCases  = 16              // at most: the first of the set
	timingBudget = 3 * time.Second // of runs of one engine, as far as the bounds of samples allow
	minSamples   = 32
	maxSamples   = 1024
	engineBatch  = 1
	timingShard  = "cases-00000.safetensors"
	// togetherPart of this machine's memory is what models may take that are loaded
	// together. A runtime can hold a model twice, as it is and in its own layout, and others
	// want memory too.
	togetherPart = 4
)

// measured is the timings of a run, by engine.
type measured struct {
	timings map[string][]int64
	apart   map[string]bool  // those that were never in memory together with another
	broken  map[string]error // those that could not be timed
	beside  map[string]compared
}

// add notes the timings of a run.
func (m measured) add(results []toolchain.EngineResult) {
	for _, e := range results {
		m.timings[e.ID] = append(m.timings[e.ID], e.TimingsNS...)
	}
}

func (m measured) latency(id string) registry.Latency {
	return performance.Summarize(m.timings[id], engineBatch)
}

// provable is how many runs it takes to bound the 99th percentile.
const provable = 320

// least is how many runs of an engine there are at least.
func (v verification) least() int {
	if v.limits.V > 1 && v.limits.Latency.P99 != nil {
		return provable
	}
	return minSamples
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
// all alike; the toolchains follow each other. What does not fit in memory together takes
// turns in processes.
func (v verification) measure(ctx context.Context, outputs runOutputs) (_ measured, err error) {
	inputs, cases, err := v.timingCases()
	if err != nil {
		return measured{}, err
	}
	rounds := rounds(cases, outputs.median(), v.least())
	done := v.p.step(fmt.Sprintf("time %s and the reference, %s each", registry.Count(len(v.candidates)+len(v.current), "engine"), registry.Count(rounds*cases, "run")))
	var held []string
	var note string
	defer func() { done(note, err, held...) }()
	m := measured{timings: make(map[string][]int64), apart: make(map[string]bool), broken: make(map[string]error), beside: make(map[string]compared)}
	running := slices.DeleteFunc(slices.Clone(v.candidates), func(c candidate) bool { return outputs.broken[c.id] != nil })
	for _, group := range v.tools.runGroups(slices.Concat(running, v.currents())) {
		if group.name == onnxRuntime {
			group.members = append([]candidate{{id: referenceID, tool: group.tool, model: v.referenceModel}}, group.members...)
		}
		turns, share := []runGroup{group}, rounds
		if size := group.size(); len(group.members) > 1 && size > v.node.MemoryMiB<<20/togetherPart {
			turns, share = group.apart(), (rounds+1)/2
			note = fmt.Sprintf("in turns, a process each: models of %d MiB are too much to be in memory together", size>>20)
		}
		for n, turn := range turns {
			dir := filepath.Join(v.scratch, fmt.Sprintf("outputs-of-timing-%s-%d", group.name, n))
			more, err := v.timed(ctx, turn, inputs, share, dir, m)
			if err != nil {
				return measured{}, err
			}
			for _, c := range turn.members {
				m.apart[c.id] = m.apart[c.id] || len(turns) > 1
			}
			held = append(held, more...)
		}
	}
	return m, nil
}

// compareAll compares each engine's latency with that of the one that it would replace.
func (v verification) compareAll(ctx context.Context, outputs runOutputs, m measured) error {
	for _, c := range v.candidates {
		var err error
		if m.beside[c.id], err = v.compareLatency(ctx, c, outputs); err != nil {
			return err
		}
	}
	return nil
}

// currents lists the engines that the next environment has, in a fixed order.
func (v verification) currents() []candidate {
	var all []candidate
	for _, label := range slices.Sorted(maps.Keys(v.current)) {
		all = append(all, v.current[label])
	}
	return all
}

// rounds spends the budget on passes over the cases, within the bounds of samples.
func rounds(cases int, median time.Duration, least int) int {
	samples := maxSamples
	if median > 0 {
		samples = min(max(int(timingBudget/median), least), maxSamples)
	}
	return (samples + cases - 1) / cases
}

// timingCases cuts the first cases off the first shard.
func (v verification) timingCases() ([]toolchain.Input, int, error) {
	first := v.cases.set.Shards[0]
	f, err := tensor.Open(filepath.Join(v.cases.dir, first.File), tensor.Limits{})
	if err != nil {
		return nil, 0, cases.TensorError(err)
	}
	defer f.Close()
	n := min(first.Count, timingCases)
	rows := make(map[string]tensor.Tensor)
	for _, name := range f.Names() {
		if name == v.cases.set.Labels {
			continue
		}
		if rows[name], err = f.Rows(name, 0, int64(n)); err != nil {
			return nil, 0, cases.TensorError(fmt.Errorf("%s: %w", first.File, err))
		}
	}
	path := filepath.Join(v.scratch, timingShard)
	if err := cases.WriteShard(path, rows); err != nil {
		return nil, 0, err
	}
	input, err := toolchain.FileInput(toolchain.RoleCases, timingShard, path)
	return []toolchain.Input{input}, n, err
}
