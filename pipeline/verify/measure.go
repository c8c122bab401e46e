package verify

import (
	"context"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"time"

	"mlpromote.dev/mlpromote/pipeline/cases"
	"mlpromote.dev/mlpromote/pipeline/fitness"
	"mlpromote.dev/mlpromote/pipeline/run"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/performance"
	"mlpromote.dev/mlpromote/validators/tensor"
	"mlpromote.dev/mlpromote/validators/tensor/tensorfile"
)

// How latency is measured: single cases, all engines taking turns, each loaded as a node loads it.
// How many runs of each engine that are follows from a budget of time and from how long a run took on
// the cases, before anything is timed: looking at the times to decide whether to go on would make
// bounds wrong.
const (
	// Runs before the timed ones: TimingWarmup of them, or as many of slow ones as take warmupTime.
	TimingWarmup = 20
	leastWarmup  = 3
	warmupTime   = 100 * time.Millisecond
	timingCases  = 16 // at most: the first of the set
	EngineBatch  = 1
	timingShard  = "cases-00000.safetensors"
	// togetherPart of this machine's memory is what models may take that are loaded
	// together. A runtime can hold a model twice, as it is and in its own layout, and others
	// want memory too.
	togetherPart = 4

	// The budget of the runs of one engine: where nothing limits latency, where something does, and
	// where the bound of the 99th percentile takes that long.
	recordedTime = time.Second
	limitedTime  = 3 * time.Second
	tailTime     = 30 * time.Second

	minSamples      = 8 // whatever the budget is
	recordedSamples = 256
	MaxSamples      = 1024
	tailOver        = 1 // runs that may be above the limit on the 99th percentile
)

// timing is how many runs of each engine are timed, the time that they may take, and how many runs come before them.
type timing struct {
	budget  time.Duration
	samples int
	warmup  int
}

// warmupFor is how many runs come before the timed ones if a run takes so long; 0 is not known.
func warmupFor(median time.Duration) int {
	if median <= 0 {
		return TimingWarmup
	}
	return min(max(int(warmupTime/median), leastWarmup), TimingWarmup)
}

// timingFor plans the measurement from the median of runs on the cases; 0 is not known.
func timingFor(v Session, median time.Duration) timing {
	limits, t := v.Limits.Latency, timing{recordedTime, recordedSamples, warmupFor(median)}
	if limits != (validators.LatencyLimits{}) {
		t.budget, t.samples = limitedTime, MaxSamples
	}
	if v.Env.LatencyTime > 0 {
		t.budget, t.samples = v.Env.LatencyTime, math.MaxInt
	}
	if limits.P99 != nil {
		t = t.tail(v.Limits.TailRuns(tailOver), median, v.Env.LatencyTime > 0)
	}
	if median > 0 {
		t.samples = min(t.samples, int(t.budget/median))
	}
	t.samples = min(max(t.samples, minSamples), timedAtMost)
	return t
}

// timedAtMost bounds how many runs somebody can ask for.
const timedAtMost = 1 << 20

// tail makes room for so many runs, where the budget is not fixed.
func (t timing) tail(runs int, median time.Duration, fixed bool) timing {
	t.samples = max(t.samples, runs)
	if !fixed && median > 0 && runs < int(tailTime/median) {
		t.budget = max(t.budget, time.Duration(runs)*median)
	} else if !fixed {
		t.budget = tailTime
	}
	return t
}

// rounds is how many passes over the cases that makes.
func (t timing) rounds(cases int) int { return (t.samples + cases - 1) / cases }

// measured is the timings of a run, by engine.
type measured struct {
	timings map[string][]int64
	apart   map[string]bool  // those that were never in memory together with another
	broken  map[string]error // those that could not be timed
	beside  map[string]compared
	budget  time.Duration
	warmup  int
	took    time.Duration    // of all that was measured
	fitness evidence.Fitness // of the machine meanwhile
}

// add notes the timings of a run.
func (m measured) add(results []toolchain.EngineResult) {
	for _, e := range results {
		m.timings[e.ID] = append(m.timings[e.ID], e.TimingsNS...)
	}
}

func (m measured) latency(id string) evidence.Latency {
	return performance.Summarize(m.timings[id], EngineBatch)
}

// median is the median time of a run of the slowest engine.
func (o RunOutputs) median() time.Duration {
	var slowest int64
	for _, e := range o.Engines {
		slowest = max(slowest, performance.Summarize(e.TimingsNS, EngineBatch).P50Ns)
	}
	return time.Duration(slowest)
}

// latencies measures the latency of engines, and compares it with that of the engines that they
// would replace.
func latencies(ctx context.Context, v Session, outputs RunOutputs) (measured, error) {
	read := v.Env.Fitness
	if read == nil {
		read = fitness.Read
	}
	began, before := v.Env.Time(), read()
	m, err := measure(ctx, v, outputs)
	if err == nil {
		err = compareAll(ctx, v, outputs, m)
	}
	m.fitness, m.took = before.Until(read()), v.Env.Time().Sub(began)
	return m, err
}

// fitnessFor is what the machine did while the latency of an engine was measured, and whether the
// times are those of its target.
func (m measured) fitnessFor(c run.Candidate, node artifact.Node, ran []evidence.ProviderShare) evidence.Fitness {
	f := m.fitness
	switch {
	case slices.Contains(node.Notes, artifact.NoteEmulated):
		f.Emulated = "the processor of this machine is emulated"
	case len(c.Engine.Providers) > 0 && c.Engine.Providers[0].Name != cpuProvider && len(ran) > 0 &&
		!slices.ContainsFunc(ran, func(p evidence.ProviderShare) bool { return p.Name != cpuProvider }):
		f.Emulated = "the engine is for " + c.Engine.Providers[0].Name + ", and " + cpuProvider + " ran all of it"
	}
	return f
}

// cpuProvider is the execution provider that every machine has.
const cpuProvider = "CPUExecutionProvider"

// measure times reference and candidates. Those of one toolchain take turns in one process, so that what disturbs the machine disturbs
// all alike; the toolchains follow each other. What does not fit in memory together takes
// turns in processes.
func measure(ctx context.Context, v Session, outputs RunOutputs) (_ measured, err error) {
	inputs, cases, err := TimingCases(v)
	if err != nil {
		return measured{}, err
	}
	plan := timingFor(v, outputs.median())
	rounds := plan.rounds(cases)
	ctx, done := v.Env.Report().StepIn(ctx, fmt.Sprintf("time %s and the reference, %s each",
		registry.Count(len(v.candidates), "engine"), registry.Count(rounds*cases, "run")))
	var held []string
	var note string
	defer func() { done(note, err, held...) }()
	m := measured{timings: make(map[string][]int64), apart: make(map[string]bool),
		broken: make(map[string]error), beside: make(map[string]compared), budget: plan.budget, warmup: plan.warmup}
	running := slices.DeleteFunc(slices.Clone(v.candidates), func(c run.Candidate) bool { return outputs.broken[c.ID] != nil })
	for _, group := range v.Tools.RunGroups(running) {
		for _, c := range v.bare {
			if c.Tool.Identity.Name == group.Name {
				group.Members = append(group.Members, c)
			}
		}
		if group.Name == run.OnnxRuntime {
			group.Members = append([]run.Candidate{{ID: run.ReferenceID, Tool: group.Tool, Model: v.ReferenceModel}}, group.Members...)
		}
		turns, share := []run.RunGroup{group}, rounds
		if size := group.Size(); len(group.Members) > 1 && size > v.Node.MemoryMiB<<20/togetherPart {
			turns, share = group.Apart(), (rounds+1)/2
			note = fmt.Sprintf("in turns, a process each: models of %d MiB are too much to be in memory together", size>>20)
		}
		for n, turn := range turns {
			dir := filepath.Join(v.Scratch, fmt.Sprintf("outputs-of-timing-%s-%d", group.Name, n))
			more, err := timed(ctx, v, turn, inputs, share, dir, m)
			if err != nil {
				return measured{}, err
			}
			for _, c := range turn.Members {
				m.apart[c.ID] = m.apart[c.ID] || len(turns) > 1
			}
			held = append(held, more...)
		}
	}
	return m, nil
}

// compareAll compares each engine's latency with that of the one that it would replace.
func compareAll(ctx context.Context, v Session, outputs RunOutputs, m measured) error {
	for _, c := range v.candidates {
		var err error
		if m.beside[c.ID], err = compareLatency(ctx, v, c, outputs); err != nil {
			return err
		}
	}
	return nil
}

// currents lists the engines of the next environment that are compared with, each once, in a fixed order.
func currents(v Session) []run.Candidate {
	var all []run.Candidate
	for _, label := range slices.Sorted(maps.Keys(v.current)) {
		was := v.current[label]
		if was.fault == "" && !slices.ContainsFunc(all, func(c run.Candidate) bool { return c.ID == was.ID }) {
			all = append(all, was.Candidate)
		}
	}
	return all
}

// TimingCases cuts the first cases off the first shard.
func TimingCases(v Session) ([]toolchain.Input, int, error) {
	first := v.Cases.Set.Shards[0]
	f, err := tensorfile.Open(filepath.Join(v.Cases.Dir, first.File), tensorfile.Limits{})
	if err != nil {
		return nil, 0, cases.TensorError(err)
	}
	defer f.Close()
	n := min(first.Count, timingCases)
	rows := make(map[string]tensor.Tensor)
	for _, name := range f.Names() {
		if name == v.Cases.Set.Labels {
			continue
		}
		if rows[name], err = f.Rows(name, 0, int64(n)); err != nil {
			return nil, 0, cases.TensorError(fmt.Errorf("%s: %w", first.File, err))
		}
	}
	path := filepath.Join(v.Scratch, timingShard)
	if err := cases.WriteShard(path, rows); err != nil {
		return nil, 0, err
	}
	input, err := toolchain.FileInput(toolchain.RoleCases, timingShard, path)
	return []toolchain.Input{input}, n, err
}
