package pipeline

import (
	"context"
	"path/filepath"
	"strconv"
	"time"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// SpecQuantize says the driver's options for a target in the words of a spec.
func SpecQuantize(options map[string]any, target registry.Target, exclude []string) string {
	return specQuantize(options, target, exclude).Flow()
}

// Again does a step that a build took once more and gives its class: the step is job, done by
// driver; runner, of this profile, runs what it leaves on a file of cases.
func Again(ctx context.Context, driver, runner toolchain.Driver, profile toolchain.Profile,
	job toolchain.Job, cases string, count int, scratch string) (registry.Reproducibility, error) {
	m := maker{worker: worker{scratch: scratch}}
	shard, err := toolchain.FileInput(toolchain.RoleCases, "cases-00000.safetensors", cases)
	if err != nil {
		return "", err
	}
	m.inputs.Cases.Add(shard, count)
	first, err := driver.Do(ctx, job, scratch+"/first")
	if err != nil {
		return "", err
	}
	s := takenStep{name: "step", outcome: first, driver: driver, job: job}
	err = m.again(ctx, (&Pipeline{}).report(), &s, runnable{tool: tool{Toolchain: Toolchain{Profile: profile, Timing: runner}}})
	return s.reproducible, err
}

// RunInChunks has verifications run engines chunk by chunk, however small they are.
func (p *Pipeline) RunInChunks() { p.chunkFrom = 1 }

// MostLoads is how often verifications load an engine again at most.
func (p *Pipeline) MostLoads(n int) { p.mostLoads = n }

// Draw has verifications draw sizes so.
func (p *Pipeline) Draw(draw func(n int) int) { p.draw = draw }

// ExtraTime sets the time of the runs of an engine beyond its cases.
func (p *Pipeline) ExtraTime(t time.Duration) { p.extraTime = t }

// NextChunk is the number of cases after a chunk that came out like this.
func NextChunk(last toolchain.EngineResult) int { return nextChunk(last) }

// CutAndJoin cuts the shards in dir into chunks of size cases, joins the pieces of each shard
// again, and returns the bytes of the tensor x of all.
func CutAndJoin(shards []registry.Shard, dir, scratch string, size int) ([]byte, error) {
	cases := material{dir: dir, set: &registry.CaseSet{Shards: shards}}
	for _, s := range shards {
		in, err := toolchain.FileInput(toolchain.RoleCases, s.File, filepath.Join(dir, s.File))
		if err != nil {
			return nil, err
		}
		cases.files = append(cases.files, registry.File{Path: s.File, Digest: in.Digest, Size: in.Size})
	}
	parts := make(map[string][]rowsOf)
	for first := 0; ; first += size {
		pieces := piecesOf(shards, first, size)
		if len(pieces) == 0 {
			break
		}
		for _, p := range pieces {
			in, err := p.input(cases, filepath.Join(scratch, strconv.Itoa(first)))
			if err != nil {
				return nil, err
			}
			count := int64(p.end - p.first)
			parts[p.shard.File] = append(parts[p.shard.File], rowsOf{in.Path, 0, count, count})
		}
	}
	var all []byte
	for _, s := range shards {
		joined := filepath.Join(scratch, s.File)
		if err := writeRows(joined, parts[s.File]); err != nil {
			return nil, err
		}
		f, err := tensor.Open(joined, tensor.Limits{})
		if err != nil {
			return nil, err
		}
		x, err := f.Rows("x", 0, int64(s.Count))
		if err != nil {
			return nil, err
		}
		all = append(all, x.Data...)
		if err := f.Close(); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// CrossCheckBelow has builds evaluate only models of fewer bytes.
func (p *Pipeline) CrossCheckBelow(size int64) { p.crossCheckBelow = size }

// SampleOf lists n of count cases for the cross-check.
func SampleOf(count, n int) []int { return sampleOf(count, n) }

// CrossCheckCount is how many of count cases of size bytes are cross-checked at most.
func CrossCheckCount(size int64, count int) int { return crossCheckCount(size, count) }

// CrossCheckOptions are the tolerances of an output of a model that is quantized or in half precision.
func CrossCheckOptions(quantized, half bool, dtype tensor.DType, values float64) tensor.Options {
	allowed := crossCheckFloat32
	switch {
	case quantized:
		allowed = crossCheckQuantized
	case half:
		allowed = crossCheckHalf
	}
	return allowed.options(dtype, values)
}

// WarnUnlikely is warnUnlikely.
var WarnUnlikely = warnUnlikely

// SlowEngines finds the engines, of these precisions, that are far slower than fp32.
func SlowEngines(precisions []string, engines []VerifiedEngine) []SlowEngine {
	var v verification
	for _, p := range precisions {
		v.candidates = append(v.candidates, candidate{engine: registry.Engine{Precision: p}})
	}
	return v.slow(engines)
}

// WithSizesOf gives the open dimensions of an interface the sizes that cases have.
var WithSizesOf = withSizesOf

// BothSizes are the sizes that two inputs can have.
var BothSizes = bothSizes

// CasesToRun are the cases of a bisection.
func CasesToRun(report registry.ParityReport, count, most int) []int {
	return casesToRun(report, count, most)
}

// ShardOf finds the shard of a case.
func ShardOf(shards []registry.Shard, number int) int { return shardOf(shards, number) }

// CheckScales is checkScales.
var CheckScales = checkScales

// OutcomeModel is outcomeModel, of which it gives the names of the files.
func OutcomeModel(outcome toolchain.Outcome, external []toolchain.Input) (names []string, err error) {
	files, _, err := outcomeModel(outcome, external)
	for _, f := range files {
		names = append(names, f.Name+" "+f.Path)
	}
	return names, err
}
