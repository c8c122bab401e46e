package pipeline

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"mlpromote.dev/mlpromote/pipeline/spec"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators/performance"
)

// BuildResult is what Build made, or found made already.
type BuildResult struct {
	Reference registry.Reference `json:"-"`
	Release   registry.Release   `json:"release"`
	Plan      registry.Digest    `json:"plan"`
	Already   bool               `json:"already"` // the environment had the release of this plan; nothing was made
	Steps     int                `json:"steps"`   // steps of drivers
	Cached    int                `json:"cached"`  // of them, taken from the cache
	Attached  int                `json:"attached"`
	// ReferenceLatency is of the reference's own run, when it was made.
	ReferenceLatency registry.Latency `json:"referenceLatency"`
	Elapsed          time.Duration    `json:"elapsedNs"`
}

// build is a build in the making.
type build struct {
	p       *Pipeline
	began   time.Time
	scratch string
	tools   tools
	node    registry.Node
	inputs  Inputs
	plan    Plan

	golden           goldenSet
	referenceLatency registry.Latency
	engines          []builtEngine

	sources       registry.Digest
	reference     registry.PartRef
	limits, iface registry.PartRef
}

// builtEngine is an engine whose files are made.
type builtEngine struct {
	tool   tool
	engine registry.Engine
	files  []toolchain.OutputFile
	steps  []takenStep
	part   registry.PartRef
}

// takenStep is a step that a driver did, or that the cache remembered.
type takenStep struct {
	name    string
	options map[string]any
	outcome toolchain.Outcome
}

// Build makes the release that the spec describes, in the first environment. What
// the cache holds is not made again, and evidence that is there is not added again,
// so that building twice changes nothing.
func (p *Pipeline) Build(ctx context.Context, s *spec.Spec) (BuildResult, error) {
	scratch, err := os.MkdirTemp("", "mlpromote-build-*")
	if err != nil {
		return BuildResult{}, err
	}
	defer os.RemoveAll(scratch)
	b := &build{p: p, began: p.now(), scratch: scratch}
	if err := b.prepare(ctx, s); err != nil {
		return BuildResult{}, err
	}
	if result, err := b.already(ctx); err != nil || result.Already {
		return result, err
	}
	if err := p.openKey(ctx, registry.RoleBuilder); err != nil {
		return BuildResult{}, err
	}
	if err := b.make(ctx); err != nil {
		return BuildResult{}, err
	}
	return b.store(ctx)
}

// Plan says what Build would do, and does nothing but read.
func (p *Pipeline) Plan(ctx context.Context, s *spec.Spec) (Plan, error) {
	scratch, err := os.MkdirTemp("", "mlpromote-plan-*")
	if err != nil {
		return Plan{}, err
	}
	defer os.RemoveAll(scratch)
	b := &build{p: p, began: p.now(), scratch: scratch}
	err = b.prepare(ctx, s)
	return b.plan, err
}

func (b *build) prepare(ctx context.Context, s *spec.Spec) error {
	model, err := b.imported(ctx, s)
	if err != nil {
		return err
	}
	if b.inputs, err = readInputs(s, model, b.scratch); err != nil {
		return err
	}
	b.tools = make(tools)
	if err := b.tools.open(ctx, b.p, hub); err != nil {
		return err
	}
	for _, e := range b.inputs.Engines {
		if err := b.tools.open(ctx, b.p, e.Toolchain); err != nil {
			return err
		}
	}
	seen, err := b.tools.planning(ctx)
	if err != nil {
		return err
	}
	b.plan, err = NewPlan(b.inputs, seen)
	return err
}

// already finds the release of this very plan at the head of the first environment,
// complete with what a builder has to say about it. An engine is built once: not again
// for an empty cache, and not on another machine.
func (b *build) already(ctx context.Context) (BuildResult, error) {
	environments, err := b.p.Registry.Environments(ctx)
	if err != nil {
		return BuildResult{}, err
	}
	first := environments.First().Name
	r, err := b.p.Registry.Release(ctx, first, b.plan.Model, "")
	if registry.HasCode(err, registry.CodeNotFound) {
		return BuildResult{}, nil
	}
	if err != nil || r.Plan != b.plan.Digest {
		return BuildResult{}, err
	}
	claims, _, err := b.p.Registry.Claims(ctx, first, r)
	if err != nil {
		return BuildResult{}, err
	}
	said := registry.Policy{Require: []string{registry.RequireSignature, registry.RequireProvenance}}.Check(r, claims)
	return BuildResult{
		Reference: registry.Reference{Environment: first, Model: r.Model, Tag: r.Tag(), Digest: r.Digest},
		Release:   r, Plan: r.Plan, Already: said.Allowed(), Elapsed: b.p.now().Sub(b.began),
	}, nil
}

// make runs the reference and makes every engine, as far as the cache does not hold
// them. Steps that do not need each other run beside each other.
func (b *build) make(ctx context.Context) error {
	var err error
	if b.node, err = b.p.Node(ctx, b.tools.runtimes()); err != nil {
		return err
	}
	b.engines = make([]builtEngine, len(b.plan.Engines))
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return b.runReference(ctx) })
	group.Go(func() error {
		for i, planned := range b.plan.Engines {
			made, err := b.makeEngine(ctx, planned)
			if err != nil {
				return err
			}
			b.engines[i] = made
		}
		return nil
	})
	return group.Wait()
}

// goldenSet is the reference's outputs on the cases.
type goldenSet struct {
	set   registry.Set
	files []toolchain.OutputFile
	step  takenStep
}

// referenceID names the reference among the engines of a run.
const referenceID = "reference"

func (b *build) runReference(ctx context.Context) error {
	driver, job, kind, version := b.referenceRun()
	step, err := b.do(ctx, driver, "run the reference", job, job.Options)
	if err != nil {
		return err
	}
	result, err := step.outcome.RunResult()
	if err != nil {
		return err
	}
	b.golden = goldenSet{step: step, set: b.inputs.Cases.set}
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
	return nil
}

func (b *build) makeEngine(ctx context.Context, planned PlannedEngine) (builtEngine, error) {
	label := planned.Variant + " for " + planned.Target.Name
	tool := b.tools[planned.Toolchain.Name]
	var err error
	if tool.Profile, err = tool.Profile.In(planned.Form); err != nil {
		return builtEngine{}, err
	}
	made := builtEngine{tool: tool, engine: registry.Engine{
		Target: planned.Target, Toolchain: planned.Toolchain, Variant: planned.Variant, Precision: planned.Precision, NativeCode: tool.Profile.NativeCode, Providers: planned.Providers}}
	model := b.inputs.Model
	if planned.Quantize != nil {
		job := toolchain.Job{Verb: toolchain.VerbQuantize, Inputs: b.inputs.forQuantizer(planned.Quantize), Options: planned.Quantize, Machine: machine(b.node)}
		step, err := b.do(ctx, b.tools[planned.Quantizer].Quantizer, "quantize "+label, job, planned.Quantize)
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
	job := toolchain.Job{Verb: toolchain.VerbCompile, Inputs: slices.Concat(model, operators), Options: planned.Compile, Machine: machine(b.node)}
	step, err := b.do(ctx, tool.Engines, "compile "+label, job, planned.Compile)
	if err != nil {
		return builtEngine{}, err
	}
	made.steps = append(made.steps, step)
	made.files = step.outcome.Files
	if err := checkTied(planned, tool.Profile, made.files); err != nil {
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
	return []toolchain.Input{{Role: toolchain.RoleModel, Name: file.Name, Path: file.Path, Digest: file.Digest, Size: file.Size}}, nil
}

// do runs a job in a folder of its own.
func (b *build) do(ctx context.Context, driver toolchain.Driver, name string, job toolchain.Job, options map[string]any) (takenStep, error) {
	done := b.p.step(name)
	out, err := os.MkdirTemp(b.scratch, "step-*")
	if err != nil {
		return takenStep{}, err
	}
	outcome, err := driver.Do(ctx, job, filepath.Join(out, "out"))
	switch {
	case err != nil:
		done("", err)
	case outcome.Cached:
		done("cached", nil)
	default:
		done("", nil, outcome.Enforced.String())
	}
	if err != nil {
		return takenStep{}, registry.Errorf(registry.CodeOf(err), "%s: %w", name, err)
	}
	return takenStep{name: name, options: options, outcome: outcome}, nil
}
