//go:build cgo

package ort

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/pipeline/toolchain/driverproc"
)

// maxTimings bounds rounds times cases, so that the response stays readable.
const maxTimings = 4_000_000

// runner is one run: several engines that take turns case by case.
type runner struct {
	options toolchain.RunOptions
	engines []*engine
	writers []*writer
	results []toolchain.EngineResult
	shards  []*shard

	progress string    // the file for it
	done     int       // runs
	told     time.Time // when progress was written last
}

// run runs groups of engines: one engine for each group if the order is sequential, else all in
// one.
func run(ctx context.Context, r driverproc.Request) (any, error) {
	o := r.Run.RunOptions
	groups := [][]toolchain.RunEngine{o.Engines}
	if o.Order != toolchain.OrderInterleaved {
		groups = slices.Collect(slices.Chunk(o.Engines, 1))
	}
	var result toolchain.RunResult
	for _, group := range groups {
		g, err := newRunner(r, group)
		if err != nil {
			return nil, err
		}
		if err := g.run(ctx); err != nil {
			return nil, err
		}
		if err := g.close(); err != nil {
			return nil, err
		}
		result.Cases, result.Engines = g.cases(), append(result.Engines, g.results...)
	}
	if len(o.Engines) == 1 {
		result.Engines[0].PeakRSS = peakRSS()
	}
	return result, nil
}

func newRunner(r driverproc.Request, group []toolchain.RunEngine) (*runner, error) {
	g := &runner{options: r.Run.RunOptions, progress: r.ProgressPath}
	for _, e := range group {
		opened, err := open(e, g.options)
		if err != nil {
			return nil, err
		}
		g.engines = append(g.engines, opened)
		g.writers = append(g.writers, &writer{dir: filepath.Join(r.Run.OutputsDir, e.ID)})
		g.results = append(g.results, toolchain.EngineResult{ID: e.ID, TimingsNS: []int64{}})
	}
	var err error
	if g.shards, err = openCases(inputs(r, toolchain.RoleCases), g.engines[0]); err != nil {
		return nil, err
	}
	for _, s := range g.shards {
		for _, e := range g.engines[1:] {
			if err := s.check(e); err != nil {
				return nil, err
			}
		}
	}
	if err := g.askShares(); err != nil {
		return nil, err
	}
	if err := g.askProfiles(); err != nil {
		return nil, err
	}
	if g.cases()*g.rounds() > maxTimings {
		return nil, driverproc.Errorf(driverproc.BadInput,
			"%d rounds of %d cases: want at most %d runs of each engine", g.rounds(), g.cases(), maxTimings)
	}
	return g, g.start()
}

// start loads the engines after all checks, so that no engine is in memory twice.
func (g *runner) start() error {
	for n, e := range g.engines {
		if err := e.start(); err != nil {
			return err
		}
		g.results[n].LoadNS = e.load.Nanoseconds()
	}
	return nil
}

func (g *runner) rounds() int { return max(g.options.Rounds, 1) }

func (g *runner) cases() int {
	last := g.shards[len(g.shards)-1]
	return last.first + int(last.count)
}

// run warms the engines up, runs all rounds, and writes the outputs of the first.
func (g *runner) run(ctx context.Context) error {
	for i := range g.options.Warmup {
		s, c := g.locate(i % g.cases())
		for n := range g.engines {
			if _, err := g.one(ctx, n, s, c, false); err != nil {
				return err
			}
		}
	}
	order := make([]int, len(g.engines))
	for n := range order {
		order[n] = n
	}
	for round := range g.rounds() {
		if err := g.round(ctx, order, round == 0); err != nil {
			return err
		}
		slices.Reverse(order)
	}
	return nil
}

func (g *runner) close() error {
	for _, e := range g.engines {
		if err := e.close(); err != nil {
			return err
		}
	}
	for _, s := range g.shards {
		if err := s.file.Close(); err != nil {
			return err
		}
	}
	return nil
}

// round runs every case on every engine, with the engines in this order.
func (g *runner) round(ctx context.Context, order []int, keep bool) error {
	for _, s := range g.shards {
		for c := range s.count {
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
func (g *runner) one(ctx context.Context, n int, s *shard, c int64, keep bool) (int64, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	e := g.engines[n]
	if err := e.feed(s, c); err != nil {
		return 0, err
	}
	g.tell()
	elapsed, err := e.run()
	if err != nil {
		return 0, inCase(s, c, e, err.Error())
	}
	if keep {
		err = g.writers[n].append(s, e)
	}
	e.bound.free()
	return elapsed.Nanoseconds(), err
}

// tell writes once a second how many runs are done.
func (g *runner) tell() {
	if now := time.Now(); now.Sub(g.told) >= time.Second {
		driverproc.Tell(g.progress, g.done, len(g.engines)*(g.options.Warmup+g.rounds()*g.cases()))
		g.told = now
	}
	g.done++
}

// locate returns the shard of a case, by the case's number in the set.
func (g *runner) locate(i int) (*shard, int64) {
	for _, s := range g.shards {
		if i < s.first+int(s.count) {
			return s, int64(i - s.first)
		}
	}
	return g.shards[0], 0
}

// peakRSS returns the highest resident memory of this process in bytes, or 0 if the system does
// not report it.
func peakRSS() int64 {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	line, _, _ := strings.Cut(rest, "kB")
	kib, err := strconv.ParseInt(strings.TrimSpace(line), 10, 64)
	if err != nil {
		return 0
	}
	return kib << 10
}

// askShares finds out which execution providers run the engines that declare some, with the
// first case.
func (g *runner) askShares() error {
	if !g.options.Shares {
		return nil
	}
	for n, e := range g.engines {
		if len(e.settings.providers) == 0 {
			continue
		}
		var err error
		if g.results[n].Providers, err = e.shares(g.shards[0]); err != nil {
			return err
		}
	}
	return nil
}

// askProfiles finds out where the time of the engines goes, with the first case.
func (g *runner) askProfiles() error {
	if g.options.Profile == 0 {
		return nil
	}
	for n, e := range g.engines {
		path, err := e.profile(g.shards[0], 1+g.options.Profile)
		if err != nil {
			return err
		}
		if g.results[n].Profile, err = readTimes(path); err != nil {
			return err
		}
	}
	return nil
}
