package caserun

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"time"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/pipeline/toolchain/driverproc"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// maxTimings bounds rounds times cases, so that the response stays readable.
const maxTimings = 4_000_000

// Engine is a loaded engine, which runs one case at a time. For each case, the function Run calls Feed, Run,
// Outputs if it keeps them, and Free, in this order. An error of Feed or Run ends the run without Free. Errors
// have type *driverproc.Error, or they are reported as tool_failed.
type Engine interface {
	// Feed reads the inputs of case c of a shard that was checked against the engine.
	Feed(s *Shard, c int64) error
	// Run runs the case and returns the duration of the run alone.
	Run(ctx context.Context) (time.Duration, error)
	// Outputs returns the outputs of the run, each with a leading case dimension of 1. They are valid until
	// Free.
	Outputs() ([]tensor.Tensor, error)
	// Free ends the use of the outputs.
	Free()
}

// Entry is an engine that takes part in a run.
type Entry struct {
	Engine  Engine
	ID      string   // of the engine
	Outputs []string // names of the outputs, in the order of Engine.Outputs
}

// Groups returns the engines that are loaded together: all of them if they take turns, else each alone.
func Groups(o toolchain.RunOptions) [][]toolchain.RunEngine {
	if o.Order == toolchain.OrderInterleaved {
		return [][]toolchain.RunEngine{o.Engines}
	}
	return slices.Collect(slices.Chunk(o.Engines, 1))
}

// CheckRounds refuses more timed runs than a response can hold. Call it before engines are loaded, because
// that can take long.
func CheckRounds(o toolchain.RunOptions, shards []*Shard) error {
	if cases := Cases(shards); cases*rounds(o) > maxTimings {
		return driverproc.Errorf(driverproc.BadInput,
			"%d rounds of %d cases: want at most %d runs of each engine", rounds(o), cases, maxTimings)
	}
	return nil
}

// Run runs a group of engines that take turns case by case: it warms them up, runs all rounds, and writes the
// outputs of the first. Results are in the order of the entries; they have IDs and timings alone. The caller
// closes engines and shards.
func Run(ctx context.Context, r driverproc.Request, shards []*Shard, entries []Entry) ([]toolchain.EngineResult, error) {
	if err := CheckRounds(r.Run.RunOptions, shards); err != nil {
		return nil, err
	}
	g := &group{options: r.Run.RunOptions, progress: r.ProgressPath, shards: shards, entries: entries}
	for _, e := range entries {
		g.writers = append(g.writers, NewWriter(filepath.Join(r.Run.OutputsDir, e.ID), e.ID, e.Outputs))
		g.results = append(g.results, toolchain.EngineResult{ID: e.ID, TimingsNS: []int64{}})
	}
	err := g.run(ctx)
	return g.results, err
}

// InCase returns an error of a run with its place, case c of a shard. It sets the place in an error of type
// *driverproc.Error, and converts other errors to that type.
func InCase(err error, engineID string, s *Shard, c int64) error {
	var failed *driverproc.Error
	if !errors.As(err, &failed) {
		failed = driverproc.Errorf(driverproc.ToolFailed, "%v", err)
	}
	failed.Engine, failed.Shard, failed.Row, failed.Case = engineID, s.Name, int(c), new(s.First+int(c))
	return failed
}

// group is one run.
type group struct {
	options toolchain.RunOptions
	entries []Entry
	writers []*Writer
	results []toolchain.EngineResult
	shards  []*Shard

	progress string    // the file for it
	done     int       // runs
	told     time.Time // when progress was written last
}

func rounds(o toolchain.RunOptions) int { return max(o.Rounds, 1) }

// run warms the engines up, runs all rounds, and writes the outputs of the first.
func (g *group) run(ctx context.Context) error {
	for i := range g.options.Warmup {
		s, c := g.locate(i % Cases(g.shards))
		for n := range g.entries {
			if _, err := g.one(ctx, n, s, c, false); err != nil {
				return err
			}
		}
	}
	order := make([]int, len(g.entries))
	for n := range order {
		order[n] = n
	}
	for round := range rounds(g.options) {
		if err := g.round(ctx, order, round == 0); err != nil {
			return err
		}
		slices.Reverse(order)
	}
	return nil
}

// round runs every case on every engine, with the engines in this order.
func (g *group) round(ctx context.Context, order []int, keep bool) error {
	for _, s := range g.shards {
		for c := range s.Count {
			for _, n := range order {
				elapsed, err := g.one(ctx, n, s, c, keep)
				if err != nil {
					return err
				}
				g.results[n].TimingsNS = append(g.results[n].TimingsNS, elapsed)
			}
		}
	}
	return nil
}

// one runs one case on one engine and returns the duration in nanoseconds.
func (g *group) one(ctx context.Context, n int, s *Shard, c int64, keep bool) (int64, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	e := g.entries[n].Engine
	if err := e.Feed(s, c); err != nil {
		return 0, err
	}
	g.tell()
	elapsed, err := e.Run(ctx)
	if err != nil {
		return 0, InCase(err, g.entries[n].ID, s, c)
	}
	if keep {
		err = g.keep(n, s)
	}
	e.Free()
	return elapsed.Nanoseconds(), err
}

// keep writes the outputs of the case that an engine ran.
func (g *group) keep(n int, s *Shard) error {
	outputs, err := g.entries[n].Engine.Outputs()
	if err != nil {
		return err
	}
	return g.writers[n].Append(s, outputs)
}

// tell writes once a second how many runs are done.
func (g *group) tell() {
	if now := time.Now(); now.Sub(g.told) >= time.Second {
		driverproc.Tell(g.progress, g.done, len(g.entries)*(g.options.Warmup+rounds(g.options)*Cases(g.shards)))
		g.told = now
	}
	g.done++
}

// locate returns the shard of a case, by the case's number in the set.
func (g *group) locate(i int) (*Shard, int64) {
	for _, s := range g.shards {
		if i < s.First+int(s.Count) {
			return s, int64(i - s.First)
		}
	}
	return g.shards[0], 0
}
