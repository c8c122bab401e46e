package build

import (
	"context"
	"errors"
	"slices"

	"mlpromote.dev/mlpromote/pipeline/plan"
	"mlpromote.dev/mlpromote/pipeline/run"
	"mlpromote.dev/mlpromote/pipeline/spec"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/policy"
	"mlpromote.dev/mlpromote/registry/tempdir"
)

// Build makes the release that the spec describes, in the first environment. What
// the cache holds is not made again, and evidence that is there is not added again,
// so that building twice changes nothing.
func Build(ctx context.Context, env *run.Env, s *spec.Spec, o Options) (Result, error) {
	temp, err := tempdir.New("build")
	if err != nil {
		return Result{}, err
	}
	defer temp.Remove()
	scratch := temp.Path
	began, w := env.Time(), run.Worker{Scratch: scratch, Budgets: run.Budgets(s)}
	prepared, err := Prepare(ctx, env, s, w, o)
	if err != nil {
		return Result{}, err
	}
	at, err := find(ctx, env, s, prepared, o)
	if err != nil || at.result.Unchanged {
		at.result.Elapsed, at.result.Failed = env.Time().Sub(began), prepared.lacking.engines
		return at.result, errors.Join(err, prepared.lacking.err)
	}
	m, origin, err := ready(ctx, env, s, prepared, w, at)
	if err != nil {
		return Result{}, err
	}
	all, failures, err := makeEngines(ctx, env, m, o)
	if err != nil {
		return Result{}, err
	}
	b := making{env: env, options: o, began: began, Maker: m, made: all, origin: origin, given: at.given}
	var result Result
	if b.parts != nil {
		result, err = storePart(ctx, b)
	} else {
		result, err = store(ctx, b)
	}
	if err != nil {
		return Result{}, err
	}
	result.Failed = all.left
	return result, failures
}

// find finds what a build would make, if it is there. The result is unchanged then.
func find(ctx context.Context, env *run.Env, s *spec.Spec, prepared Prepared, o Options) (at standing, err error) {
	if prepared.parts == nil {
		if o.CheckReproducible {
			return standing{}, nil
		}
		at.result, err = already(ctx, env, prepared.Plan)
		return at, err
	}
	origin, err := originOf(ctx, env, s)
	if err != nil {
		return standing{}, err
	}
	return joinParts(ctx, env, prepared, origin, o)
}

// ready opens what the steps of a build need, and refuses to begin what cannot end. It returns where the spec comes from, too.
func ready(ctx context.Context, env *run.Env, s *spec.Spec, prepared Prepared, w run.Worker, at standing) (Maker, *evidence.Origin, error) {
	if env.Planned != nil {
		env.Planned(prepared.Plan)
	}
	if err := env.UseBuilderKey(ctx, prepared.Plan.Model); err != nil {
		return Maker{}, nil, err
	}
	if err := checkSpace(ctx, env, prepared); err != nil {
		return Maker{}, nil, err
	}
	origin := at.origin
	if prepared.parts == nil { // else it was read before
		var err error
		if origin, err = originOf(ctx, env, s); err != nil {
			return Maker{}, nil, err
		}
	}
	prepared.parts = at.parts
	m, err := newMaker(ctx, env, prepared, w)
	if err != nil || at.given == nil {
		return m, origin, err
	}
	m.known, err = givenGolden(ctx, env, registry.SourcesRepository(at.parts.environment, prepared.Plan.Model), *at.given, w.Scratch)
	return m, origin, err
}

// makeEngines runs the reference and makes and loads the engines. failures are of engines that the release is made without.
func makeEngines(ctx context.Context, env *run.Env, m Maker, o Options) (all made, failures, err error) {
	all, err = makeAll(ctx, m, env.Report())
	env.Caution(all.golden.Warnings...)
	if err == nil {
		err = tryProgram(ctx, m, env, all.golden)
	}
	if err == nil {
		var warnings []string
		warnings, err = checkLoads(ctx, m, env.Report(), &all)
		env.Caution(warnings...)
	}
	stored := o.KeepGoing || !slices.ContainsFunc(all.engines, func(e BuiltEngine) bool { return e.failed != nil })
	if err == nil && stored && o.CheckReproducible {
		err = reproduce(ctx, m, env.Report(), &all)
	}
	if err != nil {
		return all, nil, err
	}
	return all.withoutFailed(m.lacking, o.KeepGoing)
}

// originOf says where a spec comes from; nil where nothing reads it.
func originOf(ctx context.Context, env *run.Env, s *spec.Spec) (*evidence.Origin, error) {
	if env.Origin == nil {
		return nil, nil
	}
	return env.Origin(ctx, s.File, s.Files.Opened())
}

// Plan says what Build would do, and does nothing but read.
func Plan(ctx context.Context, env *run.Env, s *spec.Spec) (plan.Plan, error) {
	temp, err := tempdir.New("plan")
	if err != nil {
		return plan.Plan{}, err
	}
	defer temp.Remove()
	scratch := temp.Path
	prepared, err := Prepare(ctx, env, s, run.Worker{Scratch: scratch, Budgets: run.Budgets(s)}, Options{})
	return prepared.Plan, err
}

// already finds the release of this very plan at the head of the first environment,
// complete with what a builder has to say about it. An engine is built once: not again
// for an empty cache, and not on another machine.
func already(ctx context.Context, env *run.Env, planned plan.Plan) (Result, error) {
	environments, err := env.Registry.Environments(ctx)
	if err != nil {
		return Result{}, err
	}
	first := environments.First().Name
	r, err := env.Registry.Release(ctx, first, planned.Model, "")
	if registry.HasCode(err, registry.CodeNotFound) {
		return Result{}, nil
	}
	if err != nil || r.Plan != planned.Digest || len(r.Engines) != len(planned.Engines) {
		return Result{}, err // also where engines failed that the release is made without
	}
	claims, _, err := env.Registry.Claims(ctx, first, r)
	if err != nil {
		return Result{}, err
	}
	said := policy.Policy{Require: []string{policy.RequireSignature, policy.RequireProvenance}}.Check(r, claims)
	return Result{
		Ref:     registry.Ref{Environment: first, Model: r.Model, Tag: r.Tag(), Digest: r.Digest},
		Release: r, Plan: r.Plan, Unchanged: said.Allowed(),
	}, nil
}
