package pipeline

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"mlpromote.dev/mlpromote/pipeline/plan"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators/format"
	"mlpromote.dev/mlpromote/validators/performance"
)

// builtEngine is an engine whose files are made.
type builtEngine struct {
	tool        tool
	engine      registry.Engine
	files       []toolchain.OutputFile
	records     []tuningRecord
	made        howMade
	tie         format.Tie // what the engine says of itself
	census      *registry.Census
	steps       []takenStep
	base        []toolchain.Input // the model that was quantized or, where nothing was, compiled
	compression *Compression      // nil: it was made from the reference model as it is
	loaded      bool              // it ran on a case here
	planned     plan.Engine
	failed      error // why it could not be made, or does not load
}

// label is what messages call the engine.
func (e builtEngine) label() string { return e.planned.Target.Name + "/" + e.planned.Variant }

// takenStep is a step that a driver did, or that the cache remembered.
type takenStep struct {
	name    string
	options map[string]any
	ranges  registry.Digest // of the table that stood in for calibration; empty for none
	outcome toolchain.Outcome
	driver  toolchain.Driver // that did it, and what it was asked
	job     toolchain.Job

	reproducible registry.Reproducibility // empty if it was not checked
}

// maker makes what a plan asks for, on this machine.
type maker struct {
	worker
	prepared
	node     registry.Node
	learned  learned
	known    *goldenSet // golden outputs that another machine made; nil: the reference is run
	baseline *baseline
	// crossCheckBelow is the size in bytes from which models are not evaluated.
	crossCheckBelow int64
}

// made is what a maker made.
type made struct {
	imported takenStep // of a source that had to be imported
	golden   goldenSet
	engines  []builtEngine
	left     []FailedEngine // engines that the release is made without
}

// maker describes this machine and fetches what earlier builds learned.
func (p *Pipeline) maker(ctx context.Context, prepared prepared, w worker) (maker, error) {
	node, err := p.Node(ctx, prepared.tools.runtimes())
	if err != nil {
		return maker{}, err
	}
	known, err := p.recall(ctx, prepared, w.scratch)
	below := cmp.Or(p.CrossCheckBelow, crossCheckModel)
	return maker{worker: w, prepared: prepared, node: node, learned: known, baseline: &baseline{}, crossCheckBelow: below}, err
}

// makeAll runs the reference and makes every engine, as far as the cache does not hold them,
// each in a lane of its own, as far as there is room. What they say comes in the order of the
// plan. An engine that cannot be made does not stop the others: why is in [builtEngine]. Errors:
// those of the reference, and of ctx.
func (m maker) makeAll(ctx context.Context, to reporter) (made, error) {
	all := made{imported: m.inputs.imported.step, engines: make([]builtEngine, len(m.plan.Engines))}
	lanes := newOrderedProgress(1+len(all.engines), to.to)
	group, ctx := errgroup.WithContext(ctx)
	start := func(lane int, work func(to reporter) error) {
		group.Go(func() error {
			defer lanes.end(lane)
			return work(reporter{lanes.progress(lane), to.now})
		})
	}
	start(0, func(to reporter) (err error) {
		if m.known != nil {
			all.golden = *m.known
			return nil
		}
		if all.golden, err = m.runReference(ctx, to); err == nil {
			err = m.crossCheck(ctx, to, &all.golden)
		}
		if err == nil {
			err = m.countConverted(ctx, to, &all.golden)
		}
		return err
	})
	for i, planned := range m.plan.Engines {
		start(1+i, func(to reporter) error {
			engine, err := m.makeEngine(ctx, to, planned)
			engine.planned, engine.failed = planned, err
			all.engines[i] = engine
			return context.Cause(ctx)
		})
	}
	return all, group.Wait()
}

// goldenSet is the golden outputs.
type goldenSet struct {
	set           registry.CaseSet
	files         []toolchain.OutputFile
	step          takenStep
	latency       registry.Latency    // of the reference's own run
	warnings      []string            // about its outputs
	crossCheck    registry.CrossCheck // who checked them
	crossChecking takenStep           // by which that was done; without a driver, it was not
}

// referenceID names the reference among the engines of a run.
const referenceID = "reference"

// runReference runs the reference on the cases. With an error it returns the warnings so far.
func (m maker) runReference(ctx context.Context, to reporter) (goldenSet, error) {
	driver, job, kind, version := m.referenceRun()
	step, err := m.do(ctx, to, driver, wanted{name: "run the reference", job: job, options: job.Options})
	if err != nil {
		return goldenSet{}, m.inputs.Cases.NamedIn(err)
	}
	result, err := step.outcome.RunResult(*job.Run)
	if err != nil {
		return goldenSet{}, registry.Errorf(registry.CodeOf(err), "run the reference: %s: %w", kind, err)
	}
	golden := goldenSet{step: step, set: m.inputs.Cases.Record, latency: performance.Summarize(result.Engines[0].TimingsNS, 1)}
	golden.set.Labels, golden.set.Origin = "", ""
	golden.set.Kind, golden.set.Runtime = kind, version
	golden.set.Node = &registry.Node{V: m.node.V, OS: m.node.OS, CPU: m.node.CPU}
	for _, shard := range golden.set.Shards {
		file, ok := step.outcome.File("outputs/" + referenceID + "/" + shard.File)
		if !ok {
			return goldenSet{}, registry.Errorf(registry.CodeInternal, "run the reference: no outputs for shard %s", shard.File)
		}
		golden.files = append(golden.files, file)
	}
	if golden.warnings, err = golden.check(m.inputs.Interface.Outputs); err != nil {
		return golden, err
	}
	for _, look := range []func() ([]string, error){
		func() ([]string, error) { return m.guessedScores(golden) },
		func() ([]string, error) { return m.oneAnswer(golden) },
		func() ([]string, error) { return m.beyondHalf(golden) },
	} {
		found, err := look()
		if golden.warnings = append(golden.warnings, found...); err != nil {
			return golden, err
		}
	}
	return golden, m.checkLabels(golden)
}

func (m maker) makeEngine(ctx context.Context, to reporter, planned plan.Engine) (builtEngine, error) {
	label := planned.Variant + " for " + planned.Target.Name
	tool := m.tools[planned.Toolchain.Name]
	var err error
	if tool.Profile, err = tool.Profile.In(planned.Form); err != nil {
		return builtEngine{}, err
	}
	built := builtEngine{tool: tool,
		made: madeOf(planned), planned: planned, engine: registry.Engine{
			Target: planned.Target, Toolchain: planned.Toolchain, Variant: planned.Variant,
			Precision: planned.Precision, NativeCode: tool.Profile.NativeCode, Providers: planned.Providers, Load: planned.Load}}
	model, err := m.compress(ctx, to, &built, label)
	if err != nil {
		return builtEngine{}, err
	}
	if built.base = model; planned.Quantize != nil {
		if model, err = m.quantize(ctx, to, &built, label); err != nil {
			return builtEngine{}, err
		}
	}
	operators := m.inputs.imported.source.operators
	built.engine.NativeCode = built.engine.NativeCode || len(operators) > 0
	taken := model
	if planned.From == plan.FromSource {
		taken = m.inputs.imported.source.files
	}
	inputs := slices.Concat(taken, operators, m.tuning(planned))
	if planned.Calibrated {
		inputs = append(inputs, m.inputs.Calibration.Files...)
	}
	job := toolchain.Job{Verb: toolchain.VerbCompile, Inputs: inputs, Options: planned.Compile, Machine: machine(m.node)}
	if job.Accelerators, err = m.devices(planned, tool.Profile); err != nil {
		return builtEngine{}, err
	}
	step, err := m.do(ctx, to, tool.Engines, wanted{name: "compile " + label, job: job, options: planned.Compile})
	if err != nil {
		return builtEngine{}, err
	}
	built.steps = append(built.steps, step)
	built.takeRecords(planned.Tuning, step.outcome.Files)
	if err := checkMade(tool.Profile, built.files); err != nil {
		return builtEngine{}, registry.Errorf(registry.CodeOf(err), "compile %s: %w", label, err)
	}
	if built.tie, err = checkTied(planned, tool.Profile, built.files); err != nil {
		return builtEngine{}, registry.Errorf(registry.CodeOf(err), "compile %s: %w", label, err)
	}
	built.census = census(tool.Profile, built.files, model)
	return built, nil
}

// devices are the vendors of accelerators that a compilation needs here. Errors: CodeWrongNode if this machine has none
// that the target asks for.
func (m maker) devices(planned plan.Engine, profile toolchain.Profile) ([]string, error) {
	a := planned.Target.Accelerator
	if a == nil || !profile.NeedsDevice {
		return nil, nil
	}
	here := slices.ContainsFunc(m.node.Accelerators, func(have registry.NodeAccelerator) bool { return have.Vendor == a.Vendor && have.Arch == a.Arch })
	if !here {
		return nil, registry.WithHint(registry.Errorf(registry.CodeWrongNode, "compile for %s: %s compiles for %s %s only on a machine that has one, and this one has none",
			planned.Target.Name, profile.Name, a.Vendor, a.Arch), "build the target there, as a part of the release (mlpromote build --target %s), and assemble the parts", planned.Target.Name)
	}
	return []string{a.Vendor}, nil
}

// checkMade looks at the files that a compiler left, or a cache had, as it does at those of others.
func checkMade(profile toolchain.Profile, files []toolchain.OutputFile) error {
	for _, f := range files {
		if err := checkFormat(f.Path, f.Name, profile); err != nil {
			return err
		}
	}
	return nil
}

// quantize quantizes the base of an engine, and returns the model that it leaves.
func (m maker) quantize(ctx context.Context, to reporter, built *builtEngine, label string) ([]toolchain.Input, error) {
	planned := built.planned
	inputs, err := m.quantizerInputs(planned, built.base)
	if err != nil {
		return nil, err
	}
	job := toolchain.Job{Verb: toolchain.VerbQuantize, Inputs: inputs, Options: planned.Quantize, Machine: machine(m.node)}
	step, err := m.do(ctx, to, m.tools[planned.Quantizer.Name].Quantizer,
		wanted{"quantize " + label, job, planned.Quantize, m.learned.ranges.from})
	if err != nil {
		return nil, err
	}
	built.steps = append(built.steps, step)
	model, err := modelOf(step.outcome)
	if err != nil || built.compression == nil {
		return model, err
	}
	return model, m.cost(ctx, to, built, CompressionStep{Step: "quantize", Options: planned.Quantize,
		Bytes: BeforeAfter{sizeOfInputs(built.base), sizeOfInputs(model)}}, model, label)
}

// modelOf takes the model that a step made as the input of the next one.
func modelOf(outcome toolchain.Outcome) ([]toolchain.Input, error) {
	file, ok := outcome.File(modelFile)
	if !ok {
		return nil, registry.Errorf(registry.CodeInternal, "the step left no %s", modelFile)
	}
	return []toolchain.Input{{Role: toolchain.RoleModel, Name: file.Name,
		Path: file.Path, Digest: file.Digest, Size: file.Size}}, nil
}

// remembered says that nothing was done, and who did it if it was not this machine.
func remembered(o toolchain.Origin) string {
	if o.Cache == "" {
		return "cached"
	}
	return "cached in " + o.Cache
}

// worker does the steps of a build, each in a folder of its own.
type worker struct {
	scratch string
	budgets map[string]toolchain.Budget // by toolchain
}

// wanted is a step that a driver is asked for.
type wanted struct {
	name    string
	job     toolchain.Job
	options map[string]any
	// rangesFrom is the version of the release whose table of ranges the job may read.
	rangesFrom string
}

// do has a driver do a step within the budget of its toolchain.
func (w worker) do(ctx context.Context, to reporter, driver toolchain.Driver, s wanted) (takenStep, error) {
	tool, err := driver.Identity(ctx)
	if err != nil {
		return takenStep{}, err
	}
	s.job.Budget = w.budgets[tool.Name]
	out, err := os.MkdirTemp(w.scratch, "step-*")
	if err != nil {
		return takenStep{}, err
	}
	ctx, done := to.stepIn(ctx, s.name)
	outcome, err := driver.Do(ctx, s.job, filepath.Join(out, "out"))
	cause := context.Cause(ctx)
	stopped := cause != nil && errors.Is(err, cause) // by a signal, or because another step failed
	switch {
	case stopped:
		done("", context.Canceled)
	case err != nil:
		done("", err)
	case outcome.Cached:
		done(s.note(remembered(outcome.Origin)), nil)
	default:
		done(s.note(""), nil, outcome.Enforced.String())
	}
	if stopped {
		return takenStep{}, err
	}
	if err != nil {
		return takenStep{}, registry.Errorf(registry.CodeOf(err), "%s: %w", s.name, err)
	}
	return takenStep{name: s.name, options: s.options, ranges: rangesOf(s.job), outcome: outcome, driver: driver, job: s.job}, nil
}

// note adds to what is said of a step what else a person should know.
func (s wanted) note(said string) string {
	if rangesOf(s.job) == "" {
		return said
	}
	return strings.TrimPrefix(said+", from the ranges of "+s.rangesFrom, ", ")
}
