//go:build cgo

package ort

import (
	"context"
	"os"
	"strconv"
	"strings"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/pipeline/toolchain/caserun"
	"mlpromote.dev/mlpromote/pipeline/toolchain/driverproc"
)

// runner is one run: several engines that take turns case by case.
type runner struct {
	request driverproc.Request
	options toolchain.RunOptions
	engines []*engine
	shards  []*caserun.Shard
}

// run runs the engines, in groups as their order asks.
func run(ctx context.Context, r driverproc.Request) (any, error) {
	o := r.Run.RunOptions
	var result toolchain.RunResult
	for _, group := range caserun.Groups(o) {
		g, err := newRunner(r, group)
		if err != nil {
			return nil, err
		}
		results, err := g.run(ctx)
		if err != nil {
			return nil, err
		}
		if err := g.close(); err != nil {
			return nil, err
		}
		result.Cases, result.Engines = caserun.Cases(g.shards), append(result.Engines, results...)
	}
	if len(o.Engines) == 1 {
		result.Engines[0].PeakRSS = peakRSS()
	}
	return result, nil
}

func newRunner(r driverproc.Request, group []toolchain.RunEngine) (*runner, error) {
	g := &runner{request: r, options: r.Run.RunOptions}
	for _, e := range group {
		opened, err := open(e, g.options)
		if err != nil {
			return nil, err
		}
		g.engines = append(g.engines, opened)
	}
	var err error
	if g.shards, err = caserun.Open(inputs(r, toolchain.RoleCases), g.engines[0].id, g.engines[0].slots()); err != nil {
		return nil, err
	}
	for _, s := range g.shards {
		for _, e := range g.engines[1:] {
			if err := s.Check(e.id, e.slots()); err != nil {
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
	if err := caserun.CheckRounds(g.options, g.shards); err != nil {
		return nil, err
	}
	return g, g.start()
}

// start loads the engines after all checks, so that no engine is in memory twice.
func (g *runner) start() error {
	for _, e := range g.engines {
		if err := e.start(); err != nil {
			return err
		}
	}
	return nil
}

// run runs all cases on the engines.
func (g *runner) run(ctx context.Context) ([]toolchain.EngineResult, error) {
	var entries []caserun.Entry
	for _, e := range g.engines {
		entries = append(entries, caserun.Entry{Engine: e, ID: e.id, Outputs: names(e.outputs)})
	}
	results, err := caserun.Run(ctx, g.request, g.shards, entries)
	if err != nil {
		return nil, err
	}
	for n, e := range g.engines {
		results[n].LoadNS, results[n].Providers, results[n].Profile = e.load.Nanoseconds(), e.providers, e.times
	}
	return results, nil
}

func (g *runner) close() error {
	for _, e := range g.engines {
		if err := e.close(); err != nil {
			return err
		}
	}
	for _, s := range g.shards {
		if err := s.Close(); err != nil {
			return err
		}
	}
	return nil
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
	for _, e := range g.engines {
		if len(e.settings.providers) == 0 {
			continue
		}
		var err error
		if e.providers, err = e.shares(g.shards[0]); err != nil {
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
	for _, e := range g.engines {
		path, err := e.profile(g.shards[0], 1+g.options.Profile)
		if err != nil {
			return err
		}
		if e.times, err = readTimes(path); err != nil {
			return err
		}
	}
	return nil
}

// inputs returns the inputs of a role, in the order of the request.
func inputs(r driverproc.Request, role string) []driverproc.RequestInput {
	var found []driverproc.RequestInput
	for _, in := range r.Inputs {
		if in.Role == role {
			found = append(found, in)
		}
	}
	return found
}
