package pipeline

import (
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
	tool    tool
	engine  registry.Engine
	files   []toolchain.OutputFile
	records []tuningRecord
	made    howMade
	tie     format.Tie // what the engine says of itself
	steps   []takenStep
	part    registry.PartRef
}

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

// make runs the reference and makes every engine, as far as the cache does not hold
// them. Steps that do not need each other run beside each other.
func (b *build) make(ctx context.Context) error {
	var err error
	if b.node, err = b.p.Node(ctx, b.tools.runtimes()); err != nil {
		return err
	}
	if err := b.recall(ctx); err != nil {
		return err
	}
	if err := b.makeAll(ctx); err != nil || !b.options.CheckReproducible {
		return err
	}
	return b.reproduce(ctx)
}

// makeAll runs the reference and makes every engine, each in a lane of its own, as far as
// there is room. What they say comes in the order of the plan, and of several errors that
// of the first.
func (b *build) makeAll(ctx context.Context) error {
	b.engines = make([]builtEngine, len(b.plan.Engines))
	orderedProgress := newOrderedProgress(1+len(b.engines), b.p.Progress)
	errs := make([]error, 1+len(b.engines))
	group, ctx := errgroup.WithContext(ctx)
	start := func(lane int, work func(p *Pipeline) error) {
		group.Go(func() error {
			defer orderedProgress.end(lane)
			errs[lane] = work(b.p.lane(orderedProgress, lane))
			return errs[lane]
		})
	}
	start(0, func(p *Pipeline) error { return b.runReference(ctx, p) })
	for i, planned := range b.plan.Engines {
		start(1+i, func(p *Pipeline) (err error) {
			b.engines[i], err = b.makeEngine(ctx, p, planned)
			return err
		})
	}
	first := group.Wait()
	for _, err := range errs {
		if err != nil && !errors.Is(err, context.Canceled) {
			return err
		}
	}
	return first
}

// goldenSet is the reference's outputs on the cases.
type goldenSet struct {
	set   registry.CaseSet
	files []toolchain.OutputFile
	step  takenStep
}

// referenceID names the reference among the engines of a run.
const referenceID = "reference"

func (b *build) runReference(ctx context.Context, p *Pipeline) error {
	driver, job, kind, version := b.referenceRun()
	step, err := b.do(ctx, p, driver, "run the reference", job, job.Options)
	if err != nil {
		return b.inputs.Cases.NamedIn(err)
	}
	result, err := step.outcome.RunResult()
	if err != nil {
		return err
	}
	b.golden = goldenSet{step: step, set: b.inputs.Cases.Record}
	b.golden.set.Labels, b.golden.set.Origin = "", ""
	b.golden.set.Kind, b.golden.set.Runtime = kind, version
	b.golden.set.Node = &registry.Node{V: b.node.V, OS: b.node.OS, CPU: b.node.CPU}
	for _, shard := range b.golden.set.Shards {
		file, ok := step.outcome.File("outputs/" + referenceID + "/" + shard.File)
		if !ok {
			return registry.Errorf(registry.CodeInternal, "run the reference: no outputs for shard %s", shard.File)
		}
		b.golden.files = append(b.golden.files, file)
	}
	b.referenceLatency = performance.Summarize(result.Engines[0].TimingsNS, 1)
	return b.checkGolden()
}

func (b *build) makeEngine(ctx context.Context, p *Pipeline, planned plan.Engine) (builtEngine, error) {
	label := planned.Variant + " for " + planned.Target.Name
	tool := b.tools[planned.Toolchain.Name]
	var err error
	if tool.Profile, err = tool.Profile.In(planned.Form); err != nil {
		return builtEngine{}, err
	}
	made := builtEngine{tool: tool,
		made: howMade{planned.Quantizer, planned.Quantize, planned.Compile}, engine: registry.Engine{
			Target: planned.Target, Toolchain: planned.Toolchain, Variant: planned.Variant,
			Precision: planned.Precision, NativeCode: tool.Profile.NativeCode, Providers: planned.Providers}}
	model := b.inputs.Model
	if planned.Quantize != nil {
		inputs, err := b.quantizerInputs(planned)
		if err != nil {
			return builtEngine{}, err
		}
		job := toolchain.Job{Verb: toolchain.VerbQuantize, Inputs: inputs,
			Options: planned.Quantize, Machine: machine(b.node)}
		step, err := b.do(ctx, p, b.tools[planned.Quantizer.Name].Quantizer, "quantize "+label, job, planned.Quantize)
		if err != nil {
			return builtEngine{}, err
		}
		made.steps = append(made.steps, step)
		if model, err = modelOf(step.outcome); err != nil {
			return builtEngine{}, err
		}
	}
	operators := b.inputs.hub.source.operators
	made.engine.NativeCode = made.engine.NativeCode || len(operators) > 0
	inputs := slices.Concat(model, operators, b.tuning(planned))
	job := toolchain.Job{Verb: toolchain.VerbCompile, Inputs: inputs, Options: planned.Compile, Machine: machine(b.node)}
	step, err := b.do(ctx, p, tool.Engines, "compile "+label, job, planned.Compile)
	if err != nil {
		return builtEngine{}, err
	}
	made.steps = append(made.steps, step)
	made.takeRecords(planned.Tuning, step.outcome.Files)
	if made.tie, err = checkTied(planned, tool.Profile, made.files); err != nil {
		return builtEngine{}, registry.Errorf(registry.CodeOf(err), "compile %s: %w", label, err)
	}
	return made, nil
}

// modelOf takes the model that a step made as the input of the next one.
func modelOf(outcome toolchain.Outcome) ([]toolchain.Input, error) {
	file, ok := outcome.File(hubFile)
	if !ok {
		return nil, registry.Errorf(registry.CodeInternal, "the step left no %s", hubFile)
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

// do runs a job in a folder of its own, within the budget of its toolchain.
func (b *build) do(ctx context.Context, p *Pipeline, driver toolchain.Driver,
	name string, job toolchain.Job, options map[string]any) (takenStep, error) {
	tool, err := driver.Identity(ctx)
	if err != nil {
		return takenStep{}, err
	}
	job.Budget = b.budgets[tool.Name]
	done := p.step(name)
	out, err := os.MkdirTemp(b.scratch, "step-*")
	if err != nil {
		return takenStep{}, err
	}
	outcome, err := driver.Do(ctx, job, filepath.Join(out, "out"))
	cause := context.Cause(ctx)
	stopped := cause != nil && errors.Is(err, cause) // by a signal, or because another step failed
	switch {
	case stopped:
		done("", context.Canceled)
	case err != nil:
		done("", err)
	case outcome.Cached:
		done(b.note(job, remembered(outcome.Origin)), nil)
	default:
		done(b.note(job, ""), nil, outcome.Enforced.String())
	}
	if stopped {
		return takenStep{}, err
	}
	if err != nil {
		return takenStep{}, registry.Errorf(registry.CodeOf(err), "%s: %w", name, err)
	}
	return takenStep{name: name, options: options, ranges: rangesOf(job), outcome: outcome, driver: driver, job: job}, nil
}

// note says of a step what else a person should know.
func (b *build) note(job toolchain.Job, said string) string {
	if rangesOf(job) == "" {
		return said
	}
	return strings.TrimPrefix(said+", from the ranges of "+b.ranges.from, ", ")
}
