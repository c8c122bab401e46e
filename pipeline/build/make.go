package build

import (
	"cmp"
	"context"
	"slices"

	"golang.org/x/sync/errgroup"

	"mlpromote.dev/mlpromote/pipeline/goldenset"
	"mlpromote.dev/mlpromote/pipeline/plan"
	"mlpromote.dev/mlpromote/pipeline/run"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
)

// newMaker describes this machine and fetches what earlier builds learned.
func newMaker(ctx context.Context, env *run.Env, prepared Prepared, w run.Worker) (Maker, error) {
	node, err := env.Node(ctx, prepared.Tools.Runtimes())
	if err != nil {
		return Maker{}, err
	}
	known, err := recall(ctx, env, prepared, w.Scratch)
	below := cmp.Or(env.CrossCheckBelow, goldenset.EvaluatorModel)
	return Maker{Worker: w, Prepared: prepared, Node: node, learned: known, Baseline: &Baseline{}, crossCheckBelow: below}, err
}

// makeAll runs the reference and makes every engine, as far as the cache does not hold them,
// each in a lane of its own, as far as there is room. What they say comes in the order of the
// plan. An engine that cannot be made does not stop the others: why is in [BuiltEngine]. Errors:
// those of the reference, and of ctx.
func makeAll(ctx context.Context, m Maker, to run.Reporter) (made, error) {
	all := made{imported: m.Inputs.Imported.Step, engines: make([]BuiltEngine, len(m.Plan.Engines))}
	lanes := run.NewOrderedProgress(1+len(all.engines), to.To)
	group, ctx := errgroup.WithContext(ctx)
	start := func(lane int, work func(to run.Reporter) error) {
		group.Go(func() error {
			defer lanes.End(lane)
			return work(run.Reporter{To: lanes.Progress(lane), Now: to.Now})
		})
	}
	start(0, func(to run.Reporter) (err error) {
		if m.known != nil {
			all.golden = *m.known
			return nil
		}
		if all.golden, err = RunReference(ctx, m, to); err == nil {
			err = crossCheck(ctx, m, to, &all.golden)
		}
		if err == nil {
			err = countConverted(ctx, m, to, &all.golden)
		}
		return err
	})
	for i, planned := range m.Plan.Engines {
		start(1+i, func(to run.Reporter) error {
			engine, err := MakeEngine(ctx, m, to, planned)
			engine.planned, engine.failed = planned, err
			all.engines[i] = engine
			return context.Cause(ctx)
		})
	}
	return all, group.Wait()
}

// MakeEngine compiles an engine as planned, and quantizes it before if the plan asks for it. Errors: those of drivers.
func MakeEngine(ctx context.Context, m Maker, to run.Reporter, planned plan.Engine) (BuiltEngine, error) {
	label := planned.Variant + " for " + planned.Target.Name
	tool := m.Tools[planned.Toolchain.Name]
	var err error
	if tool.Profile, err = tool.Profile.In(planned.Form); err != nil {
		return BuiltEngine{}, err
	}
	built := BuiltEngine{Tool: tool,
		made: madeOf(planned), planned: planned, Engine: artifact.Engine{
			Target: planned.Target, Toolchain: planned.Toolchain, Variant: planned.Variant,
			Precision: planned.Precision, NativeCode: tool.Profile.NativeCode, Providers: planned.Providers, Load: planned.Load}}
	model, err := compress(ctx, m, to, &built, label)
	if err != nil {
		return BuiltEngine{}, err
	}
	if built.base = model; planned.Quantize != nil {
		if model, err = quantize(ctx, m, to, &built, label); err != nil {
			return BuiltEngine{}, err
		}
	}
	operators := m.Inputs.Imported.Source.Operators
	built.Engine.NativeCode = built.Engine.NativeCode || len(operators) > 0
	taken := model
	if planned.From == plan.FromSource {
		taken = m.Inputs.Imported.Source.Files
	}
	inputs := slices.Concat(taken, operators, tuning(m, planned))
	if planned.Calibrated {
		inputs = append(inputs, m.Inputs.Calibration.Files...)
	}
	job := toolchain.Job{Verb: toolchain.VerbCompile, Inputs: inputs, Options: planned.Compile, Machine: run.Machine(m.Node)}
	if job.Accelerators, err = devices(m, planned, tool.Profile); err != nil {
		return BuiltEngine{}, err
	}
	step, err := m.Do(ctx, to, tool.Engines, run.Task{Name: "compile " + label, Job: job, Options: planned.Compile})
	if err != nil {
		return BuiltEngine{}, err
	}
	built.steps = append(built.steps, step)
	built.takeRecords(planned.Tuning, step.Outcome.Files)
	if err := checkMade(tool.Profile, built.Files); err != nil {
		return BuiltEngine{}, registry.Errorf(registry.CodeOf(err), "compile %s: %w", label, err)
	}
	if built.tie, err = checkTied(planned, tool.Profile, built.Files); err != nil {
		return BuiltEngine{}, registry.Errorf(registry.CodeOf(err), "compile %s: %w", label, err)
	}
	built.census = census(tool.Profile, built.Files, model)
	return built, nil
}

// devices are the vendors of accelerators that a compilation needs here. Errors: CodeWrongNode if this machine has none
// that the target asks for.
func devices(m Maker, planned plan.Engine, profile toolchain.Profile) ([]string, error) {
	a := planned.Target.Accelerator
	if a == nil || !profile.NeedsDevice {
		return nil, nil
	}
	here := slices.ContainsFunc(m.Node.Accelerators, func(have artifact.NodeAccelerator) bool { return have.Vendor == a.Vendor && have.Arch == a.Arch })
	if !here {
		return nil, registry.WithHint(registry.Errorf(registry.CodeWrongNode, "compile for %s: %s compiles for %s %s only on a machine that has one, and this one has none",
			planned.Target.Name, profile.Name, a.Vendor, a.Arch), "build the target there, as a part of the release (mlpromote build --target %s), and assemble the parts", planned.Target.Name)
	}
	return []string{a.Vendor}, nil
}

// checkMade looks at the files that a compiler left, or a cache had, as it does at those of others.
func checkMade(profile toolchain.Profile, files []toolchain.OutputFile) error {
	for _, f := range files {
		if err := run.CheckFormat(f.Path, f.Name, profile); err != nil {
			return err
		}
	}
	return nil
}

// quantize quantizes the base of an engine, and returns the model that it leaves.
func quantize(ctx context.Context, m Maker, to run.Reporter, built *BuiltEngine, label string) ([]toolchain.Input, error) {
	planned := built.planned
	inputs, err := quantizerInputs(m, planned, built.base)
	if err != nil {
		return nil, err
	}
	job := toolchain.Job{Verb: toolchain.VerbQuantize, Inputs: inputs, Options: planned.Quantize, Machine: run.Machine(m.Node)}
	step, err := m.Do(ctx, to, m.Tools[planned.Quantizer.Name].Quantizer,
		run.Task{Name: "quantize " + label, Job: job, Options: planned.Quantize, RangesFrom: m.learned.ranges.from})
	if err != nil {
		return nil, err
	}
	built.steps = append(built.steps, step)
	model, err := run.ModelOf(step.Outcome)
	if err != nil || built.compression == nil {
		return model, err
	}
	return model, cost(ctx, m, to, built, CompressionStep{Step: "quantize", Options: planned.Quantize,
		Bytes: BeforeAfter{run.SizeOf(built.base), run.SizeOf(model)}}, model, label)
}
