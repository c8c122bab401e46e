package build

import (
	"context"
	"errors"
	"slices"

	"mlpromote.dev/mlpromote/pipeline/ingest"
	"mlpromote.dev/mlpromote/pipeline/plan"
	"mlpromote.dev/mlpromote/pipeline/run"
	"mlpromote.dev/mlpromote/pipeline/spec"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/validators"
)

// Prepared is what a spec comes to: what it names, the toolchains that it needs, and the plan.
type Prepared struct {
	Inputs  ingest.Inputs
	Tools   run.Tools
	Plan    plan.Plan
	lacking lackingTools // engines of the spec that the plan is made without
	seen    map[string]plan.Tool
	parts   *wantedParts // nil: a whole release is made
}

// Prepare reads what the spec names and plans the build. If it is to keep going, the plan is made
// without the engines whose toolchains cannot be had here.
func Prepare(ctx context.Context, env *run.Env, s *spec.Spec, w run.Worker, o Options) (Prepared, error) {
	if len(o.Targets) > 0 && o.KeepGoing {
		return Prepared{}, registry.Errorf(registry.CodeInvalid, "a part of a release has all engines of its targets: build without keeping going")
	}
	model, err := ingest.ImportSource(ctx, env, s, w)
	if err != nil {
		return Prepared{}, err
	}
	in, err := ingest.Read(s, model, w.Scratch)
	if err != nil {
		return Prepared{}, err
	}
	if err := artifact.CheckEngines(len(in.Engines)); err != nil {
		return Prepared{}, err
	}
	parts, err := onlyTargets(&in, o.Targets)
	if err != nil {
		return Prepared{}, err
	}
	cautioned := len(in.Notes)
	env.Caution(slices.Concat(in.Notes, in.Cases.Warnings, in.Calibration.Warnings)...)
	if said := in.Quantized; said != "" {
		env.Step("read "+s.Source.Path.Written)("already quantized ("+said+"), passes through", nil)
	}
	if err := plan.CheckLimits(in.Inputs); err != nil {
		return Prepared{}, err
	}
	found, lacking, err := toolsFor(ctx, env, &in, o.KeepGoing)
	if err != nil {
		return Prepared{}, err
	}
	if err := in.TryBatch(ctx, env, w, found[run.OnnxRuntime].Engines); err != nil {
		return Prepared{}, err
	}
	env.Caution(in.Notes[cautioned:]...)
	seen, err := found.Planning(ctx)
	if err != nil {
		return Prepared{}, err
	}
	planned, err := plan.New(in.Inputs, seen)
	if err == nil {
		err = errors.Join(warnLimits(env, planned.Limits, in, s.Precisions()), warnRare(env, planned.Limits, in))
	}
	return Prepared{in, found, planned, lacking, seen, parts}, err
}

// warnLimits warns of limits that the cases can hardly prove, or that say little.
func warnLimits(env *run.Env, limits validators.Limits, in ingest.Inputs, precisions []string) error {
	cases := in.Cases.Distinct()
	labelled, err := in.Cases.Labelled(in.Interface)
	if err != nil {
		return err
	}
	few, unused := limits.MoreCases(cases, labelled)
	for _, w := range []struct{ of, text string }{
		{"cases", few},
		{"cases", limits.Unproven(in.Cases.Sample(in.Interface))},
		{"limits", limits.Loose(cases)},
		{"limits", unused},
		{"limits", in.Limits.Unbound(precisions)},
	} {
		if w.text != "" {
			env.Caution(w.of + ": " + w.text)
		}
	}
	return nil
}

// warnRare warns of a rare label if the metric hardly counts it.
func warnRare(env *run.Env, limits validators.Limits, in ingest.Inputs) error {
	rare, err := in.Cases.Rare(in.Interface, limits.Accuracy)
	if err == nil && rare.Is() && limits.Accuracy != nil {
		env.Caution(rare.Text(in.Cases.Record.Labels, limits.Accuracy.Metric))
	}
	return err
}

// lackingTools are engines of a spec whose toolchains cannot be had on this machine.
type lackingTools struct {
	engines []FailedEngine
	err     error // about each toolchain
}

// toolsFor opens the toolchains that the engines of a spec need. One that cannot be installed or
// found is not needed by all engines: if the build is to keep going, those that need it are taken
// out of in. Errors: those of ONNX Runtime, which every build needs; of the other toolchains, if the
// build is not to keep going or no engine is left.
func toolsFor(ctx context.Context, env *run.Env, in *ingest.Inputs, keepGoing bool) (run.Tools, lackingTools, error) {
	found := make(run.Tools)
	if err := found.Open(ctx, env, run.OnnxRuntime); err != nil {
		return nil, lackingTools{}, err
	}
	var lacking lackingTools
	var good []plan.Requested
	failed := make(map[string]error)
	for _, e := range in.Engines {
		var why error
		for _, name := range e.Tools() {
			err, tried := failed[name]
			if !tried {
				err = found.OpenCompiler(ctx, env, name)
				failed[name] = err
				lacking.err = errors.Join(lacking.err, err)
			}
			if ctx.Err() != nil {
				return nil, lackingTools{}, err
			}
			if why == nil {
				why = err
			}
		}
		if why == nil {
			good = append(good, e)
			continue
		}
		lacking.engines = append(lacking.engines, FailedEngine{e.Target.Name + "/" + e.Variant, registry.CodeOf(why), registry.PlainText(why.Error())})
	}
	switch {
	case lacking.err == nil:
		return found, lackingTools{}, nil
	case keepGoing && len(good) > 0:
		in.Engines = good
		return found, lacking, nil
	case len(good) > 0:
		return nil, lacking, registry.WithHint(lacking.err,
			"%s can be made without: to make the release of those, build with --keep-going", registry.Count(len(good), "engine"))
	}
	return nil, lacking, lacking.err
}
