package pipeline

import (
	"context"
	"errors"
	"slices"
	"time"

	"mlpromote.dev/mlpromote/pipeline/plan"
	"mlpromote.dev/mlpromote/pipeline/spec"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/tempdir"
	"mlpromote.dev/mlpromote/validators"
)

// BuildResult is what Build made, or found made already.
type BuildResult struct {
	Ref       registry.Ref     `json:"-"`
	Release   registry.Release `json:"release"`
	Plan      registry.Digest  `json:"plan"`
	Unchanged bool             `json:"unchanged"` // the environment had the release of this plan; nothing was made
	Steps     int              `json:"steps"`     // steps of drivers
	Cached    int              `json:"cached"`    // of them, taken from the cache
	Attached  int              `json:"attached"`
	// Failed are engines of the plan that the release does not have.
	Failed []FailedEngine `json:"failed,omitempty"`
	// Reproducible is the class of each engine, by label, where it was asked for.
	Reproducible map[string]registry.Reproducibility `json:"reproducible,omitempty"`
	// Compression is what was made of the model of each compressed engine, by label, and what it costs.
	Compression map[string]*Compression `json:"compression,omitempty"`
	// CrossCheck says who checked the golden outputs, when they were made.
	CrossCheck *registry.CrossCheck `json:"crossCheck,omitempty"`
	// ReferenceLatency is of the reference's own run, when it was made.
	ReferenceLatency registry.Latency `json:"referenceLatency"`
	Elapsed          time.Duration    `json:"elapsedNs"`
}

// BuildOptions say how a build is done. The zero BuildOptions make what is not there.
type BuildOptions struct {
	// CheckReproducible does every step twice, in two processes, and says in the provenance
	// how it came out; the drivers must remember nothing. It makes a release that is there.
	CheckReproducible bool
	// KeepGoing makes the release of the engines that could be made. What could not is in
	// BuildResult.Failed, and is the error beside the result. Without it nothing is stored.
	KeepGoing bool
	// Targets are the names of the targets whose engines are made; empty: all. Then what was made is
	// stored as a part of a release, which [Pipeline.Assemble] puts together.
	Targets []string
}

// prepared is what a spec comes to: what it names, the toolchains that it needs, and the plan.
type prepared struct {
	inputs  inputs
	tools   tools
	plan    plan.Plan
	lacking lackingTools // engines of the spec that the plan is made without
	seen    map[string]plan.Tool
	parts   *wantedParts // nil: a whole release is made
}

// build is a build whose steps are done: what was made waits to be stored.
type build struct {
	p       *Pipeline
	options BuildOptions
	began   time.Time
	maker
	made
	origin    *registry.Origin  // nil: not known
	assembled []registry.Digest // parts that the release was put together from
	given     *registry.Sources // of the release that this part belongs to; nil: this build stores them
}

// standing is what the first environment has of a build before it begins.
type standing struct {
	result BuildResult // unchanged if nothing is to be made
	// Of a part of a release:
	origin *registry.Origin  // nil: not known
	parts  *wantedParts      // where the parts are
	given  *registry.Sources // nil: there is no part yet
}

// Build makes the release that the spec describes, in the first environment. What
// the cache holds is not made again, and evidence that is there is not added again,
// so that building twice changes nothing.
func (p *Pipeline) Build(ctx context.Context, s *spec.Spec, o BuildOptions) (BuildResult, error) {
	temp, err := tempdir.New("build")
	if err != nil {
		return BuildResult{}, err
	}
	defer temp.Remove()
	scratch := temp.Path
	began, w := p.now(), worker{scratch, budgets(s)}
	prepared, err := p.prepare(ctx, s, w, o)
	if err != nil {
		return BuildResult{}, err
	}
	at, err := p.standing(ctx, s, prepared, o)
	if err != nil || at.result.Unchanged {
		at.result.Elapsed, at.result.Failed = p.now().Sub(began), prepared.lacking.engines
		return at.result, errors.Join(err, prepared.lacking.err)
	}
	m, origin, err := p.ready(ctx, s, prepared, w, at)
	if err != nil {
		return BuildResult{}, err
	}
	all, failures, err := p.makeEngines(ctx, m, o)
	if err != nil {
		return BuildResult{}, err
	}
	b := build{p: p, options: o, began: began, maker: m, made: all, origin: origin, given: at.given}
	var result BuildResult
	if b.parts != nil {
		result, err = b.storePart(ctx)
	} else {
		result, err = b.store(ctx)
	}
	if err != nil {
		return BuildResult{}, err
	}
	result.Failed = all.left
	return result, failures
}

// standing finds what a build would make, if it is there. The result is unchanged then.
func (p *Pipeline) standing(ctx context.Context, s *spec.Spec, prepared prepared, o BuildOptions) (at standing, err error) {
	if prepared.parts == nil {
		if o.CheckReproducible {
			return standing{}, nil
		}
		at.result, err = p.already(ctx, prepared.plan)
		return at, err
	}
	origin, err := p.originOf(ctx, s)
	if err != nil {
		return standing{}, err
	}
	return p.joinParts(ctx, prepared, origin, o)
}

// ready opens what the steps of a build need, and refuses to begin what cannot end. It returns where the spec comes from, too.
func (p *Pipeline) ready(ctx context.Context, s *spec.Spec, prepared prepared, w worker, at standing) (maker, *registry.Origin, error) {
	if p.Planned != nil {
		p.Planned(prepared.plan)
	}
	if err := p.openBuilderKey(ctx, prepared.plan.Model); err != nil {
		return maker{}, nil, err
	}
	if err := p.checkSpace(ctx, prepared); err != nil {
		return maker{}, nil, err
	}
	origin := at.origin
	if prepared.parts == nil { // else it was read before
		var err error
		if origin, err = p.originOf(ctx, s); err != nil {
			return maker{}, nil, err
		}
	}
	prepared.parts = at.parts
	m, err := p.maker(ctx, prepared, w)
	if err != nil || at.given == nil {
		return m, origin, err
	}
	m.known, err = p.givenGolden(ctx, registry.SourcesRepository(at.parts.environment, prepared.plan.Model), *at.given, w.scratch)
	return m, origin, err
}

// makeEngines runs the reference and makes and loads the engines. failures are of engines that the release is made without.
func (p *Pipeline) makeEngines(ctx context.Context, m maker, o BuildOptions) (all made, failures, err error) {
	all, err = m.makeAll(ctx, p.report())
	p.warn(all.golden.warnings...)
	if err == nil {
		err = m.tryProgram(ctx, p, all.golden)
	}
	if err == nil {
		var warnings []string
		warnings, err = m.checkLoads(ctx, p.report(), &all)
		p.warn(warnings...)
	}
	stored := o.KeepGoing || !slices.ContainsFunc(all.engines, func(e builtEngine) bool { return e.failed != nil })
	if err == nil && stored && o.CheckReproducible {
		err = m.reproduce(ctx, p.report(), &all)
	}
	if err != nil {
		return all, nil, err
	}
	return all.withoutFailed(m.lacking, o.KeepGoing)
}

// originOf says where a spec comes from; nil where nothing reads it.
func (p *Pipeline) originOf(ctx context.Context, s *spec.Spec) (*registry.Origin, error) {
	if p.Origin == nil {
		return nil, nil
	}
	return p.Origin(ctx, s.File, s.Files.Opened())
}

// Plan says what Build would do, and does nothing but read.
func (p *Pipeline) Plan(ctx context.Context, s *spec.Spec) (plan.Plan, error) {
	temp, err := tempdir.New("plan")
	if err != nil {
		return plan.Plan{}, err
	}
	defer temp.Remove()
	scratch := temp.Path
	prepared, err := p.prepare(ctx, s, worker{scratch, budgets(s)}, BuildOptions{})
	return prepared.plan, err
}

// budgets are what the spec gives the steps of toolchains.
func budgets(s *spec.Spec) map[string]toolchain.Budget {
	all := make(map[string]toolchain.Budget, len(s.Budgets))
	for name, b := range s.Budgets {
		all[name] = toolchain.Budget{Time: time.Duration(b.Time),
			Cores: int(b.Cores), MemoryBytes: int64(b.Memory), GPUs: int(b.GPUs)}
	}
	return all
}

// prepare reads what the spec names and plans the build. If it is to keep going, the plan is made
// without the engines whose toolchains cannot be had here.
func (p *Pipeline) prepare(ctx context.Context, s *spec.Spec, w worker, o BuildOptions) (prepared, error) {
	if len(o.Targets) > 0 && o.KeepGoing {
		return prepared{}, registry.Errorf(registry.CodeInvalid, "a part of a release has all engines of its targets: build without keeping going")
	}
	model, err := p.imported(ctx, s, w)
	if err != nil {
		return prepared{}, err
	}
	in, err := readInputs(s, model, w.scratch)
	if err != nil {
		return prepared{}, err
	}
	parts, err := in.onlyTargets(o.Targets)
	if err != nil {
		return prepared{}, err
	}
	p.warn(slices.Concat(in.Notes, in.Cases.Warnings, in.Calibration.Warnings)...)
	if said := in.Quantized; said != "" {
		p.step("read "+s.Source.Path.Written)("already quantized ("+said+"), passes through", nil)
	}
	if err := plan.CheckLimits(in.Inputs); err != nil {
		return prepared{}, err
	}
	found, lacking, err := p.toolsFor(ctx, &in, o.KeepGoing)
	if err != nil {
		return prepared{}, err
	}
	seen, err := found.planning(ctx)
	if err != nil {
		return prepared{}, err
	}
	planned, err := plan.New(in.Inputs, seen)
	if err == nil {
		p.warnLimits(planned.Limits, in, s.Precisions())
	}
	return prepared{in, found, planned, lacking, seen, parts}, err
}

// warnLimits warns of limits that the cases can hardly prove, or that say little.
func (p *Pipeline) warnLimits(limits validators.Limits, in inputs, precisions []string) {
	cases := in.Cases.Distinct()
	for _, w := range []struct{ of, text string }{
		{"cases", limits.Few(cases)},
		{"cases", limits.Unproven(in.Cases.Sample(in.Interface))},
		{"limits", limits.Loose(cases)},
		{"limits", in.Limits.Unbound(precisions)},
	} {
		if w.text != "" {
			p.warn(w.of + ": " + w.text)
		}
	}
}

// already finds the release of this very plan at the head of the first environment,
// complete with what a builder has to say about it. An engine is built once: not again
// for an empty cache, and not on another machine.
func (p *Pipeline) already(ctx context.Context, planned plan.Plan) (BuildResult, error) {
	environments, err := p.Registry.Environments(ctx)
	if err != nil {
		return BuildResult{}, err
	}
	first := environments.First().Name
	r, err := p.Registry.Release(ctx, first, planned.Model, "")
	if registry.HasCode(err, registry.CodeNotFound) {
		return BuildResult{}, nil
	}
	if err != nil || r.Plan != planned.Digest || len(r.Engines) != len(planned.Engines) {
		return BuildResult{}, err // also where engines failed that the release is made without
	}
	claims, _, err := p.Registry.Claims(ctx, first, r)
	if err != nil {
		return BuildResult{}, err
	}
	said := registry.Policy{Require: []string{registry.RequireSignature, registry.RequireProvenance}}.Check(r, claims)
	return BuildResult{
		Ref:     registry.Ref{Environment: first, Model: r.Model, Tag: r.Tag(), Digest: r.Digest},
		Release: r, Plan: r.Plan, Unchanged: said.Allowed(),
	}, nil
}
