package run

import (
	"context"
	"slices"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/tempdir"
)

// RunGroup is engines that run in one process, taking turns.
type RunGroup struct {
	Name    string // for folders
	Tool    Tool
	Members []Candidate
}

// RunGroups groups the engines of a toolchain that can run in one process. Each
// toolchain has one, even if no engine is in it.
func (t Tools) RunGroups(candidates []Candidate) []RunGroup {
	var all []RunGroup
	for _, name := range t.names() {
		together := RunGroup{Name: name, Tool: t[name]}
		var alone []RunGroup
		for _, c := range candidates {
			switch {
			case c.Tool.Identity.Name != name || c.Tool.Served != nil:
			case c.alone():
				alone = append(alone, RunGroup{name + "-" + c.ID, t[name], []Candidate{c}})
			default:
				together.Members = append(together.Members, c)
			}
		}
		all = append(append(all, together), alone...)
	}
	for _, c := range candidates {
		if c.Tool.Served != nil { // its server has one engine
			all = append(all, RunGroup{c.Tool.Served.By + "-" + c.ID, c.Tool, []Candidate{c}})
		}
	}
	return all
}

// alone reports whether the engine must run in a process of its own, because it or its load profile
// configures the process.
func (c Candidate) alone() bool {
	load := c.Engine.Load
	return c.Model.Alone || load != nil && (len(load.Env) > 0 || c.Tool.Profile.LoadsProcess)
}

// Size is what the files of the models take, in bytes. What several members have counts
// for each: that is how often it is loaded.
func (c RunGroup) Size() int64 {
	var n int64
	for _, m := range c.Members {
		n += m.Model.Size()
	}
	return n
}

// Apart has every member run twice, alone, in an order and then in reverse, so that what
// changes on the machine meanwhile meets all alike.
func (c RunGroup) Apart() []RunGroup {
	var turns []RunGroup
	for _, m := range c.Members {
		turns = append(turns, RunGroup{c.Name, c.Tool, []Candidate{m}})
	}
	back := slices.Clone(turns)
	slices.Reverse(back)
	return append(turns, back...)
}

// EngineRun is a run of engines of one toolchain in the making.
type EngineRun struct {
	Tool Tool
	Job  toolchain.Job
	Held []string // how the driver was held, if it ran

	Outcome toolchain.Outcome
}

// Run begins a run of engines.
func (t Tool) Run(o toolchain.RunOptions) EngineRun {
	return EngineRun{Tool: t, Job: toolchain.Job{Verb: toolchain.VerbRun, Run: &o}}
}

// AddCandidate puts an engine into the run, for the providers that it declares. It is loaded by
// its load profile, or else as the runtime does by itself.
func (r *EngineRun) AddCandidate(c Candidate) {
	load := artifact.LoadProfile{Options: map[string]string{}}
	if c.Engine.Load != nil {
		load = *c.Engine.Load
	}
	r.Job.Run.Engines = append(r.Job.Run.Engines, toolchain.RunEngine{ID: c.ID, Path: c.Model.Entry,
		Operators: c.Model.Operators, Providers: c.Engine.Providers, Load: load.Options})
	r.Job.Inputs = append(r.Job.Inputs, c.Model.Inputs...)
	r.Tool.Labels = c.Tool.Labels
	if a := c.Engine.Target.Accelerator; a != nil && !slices.Contains(r.Job.Accelerators, a.Vendor) {
		r.Job.Accelerators = append(r.Job.Accelerators, a.Vendor)
	}
	if len(load.Env) > 0 {
		r.Job.Run.Env = load.Env
	}
}

// Do runs what was added, in the order of adding. A run of nothing does nothing.
func (r *EngineRun) Do(ctx context.Context, dir string) ([]toolchain.EngineResult, error) {
	if len(r.Job.Run.Engines) == 0 {
		return nil, nil
	}
	job := r.Job
	if r.Tool.Profile.OwnRunner || r.Tool.Served != nil {
		temp, err := tempdir.New("inputs")
		if err != nil {
			return nil, err
		}
		defer temp.Remove()
		if job.Inputs, err = withoutAnswers(job.Inputs, r.Tool.Labels, temp.Path); err != nil {
			return nil, err
		}
	}
	outcome, err := r.Tool.Timing.Do(ctx, job, dir)
	if err != nil {
		return nil, registry.Errorf(registry.CodeOf(err), "%s: %w", r.Tool.runner(), err)
	}
	if r.Outcome = outcome; !outcome.Cached {
		r.Held = []string{r.Tool.runner() + ": " + outcome.Enforced.String()}
	}
	result, err := outcome.RunResult(*r.Job.Run)
	if err != nil {
		return nil, registry.Errorf(registry.CodeOf(err), "%s: %w", r.Tool.runner(), err)
	}
	return result.Engines, nil
}

// runner names what runs the engines.
func (t Tool) runner() string {
	if t.Served != nil {
		return "server " + t.Served.By
	}
	return t.Identity.Name
}

// Fix loads all engines as the reference is loaded: on one thread, without a load profile.
func (r *EngineRun) Fix() {
	r.Job.Run.Threads, r.Job.Run.Level = RunThreads, r.Tool.Profile.Level
	for i := range r.Job.Run.Engines {
		r.Job.Run.Engines[i].Load = nil
	}
}
