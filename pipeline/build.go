package pipeline

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
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
	// Reproducible is the class of each engine, by label, where it was asked for.
	Reproducible map[string]registry.Reproducibility `json:"reproducible,omitempty"`
	// ReferenceLatency is of the reference's own run, when it was made.
	ReferenceLatency registry.Latency `json:"referenceLatency"`
	Elapsed          time.Duration    `json:"elapsedNs"`
}

// BuildOptions say how a build is done. The zero BuildOptions make what is not there.
type BuildOptions struct {
	// CheckReproducible does every step twice, in two processes, and says in the provenance
	// how it came out; the drivers must remember nothing. It makes a release that is there.
	CheckReproducible bool
}

// build is a build in the making.
type build struct {
	p       *Pipeline
	options BuildOptions
	began   time.Time
	scratch string
	budgets map[string]toolchain.Budget // by toolchain
	tools   tools
	node    registry.Node
	inputs  Inputs
	plan    Plan

	ranges           knownRanges // and records, of the last build
	records          []tuningRecord
	golden           goldenSet
	referenceLatency registry.Latency
	engines          []builtEngine

	sources       registry.Digest
	reference     registry.PartRef
	limits, iface registry.PartRef
}

// builtEngine is an engine whose files are made.
type builtEngine struct {
	tool    tool
	engine  registry.Engine
	files   []toolchain.OutputFile
	records []tuningRecord
	made    howMade
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

	reproducible registry.Reproducibility // empty where nobody tried
}

// Build makes the release that the spec describes, in the first environment. What
// the cache holds is not made again, and evidence that is there is not added again,
// so that building twice changes nothing.
func (p *Pipeline) Build(ctx context.Context, s *spec.Spec, o BuildOptions) (BuildResult, error) {
	scratch, err := os.MkdirTemp("", "mlpromote-build-*")
	if err != nil {
		return BuildResult{}, err
	}
	defer os.RemoveAll(scratch)
	b := &build{p: p, options: o, began: p.now(), scratch: scratch, budgets: budgets(s)}
	if err := b.prepare(ctx, s); err != nil {
		return BuildResult{}, err
	}
	if !o.CheckReproducible {
		if result, err := b.already(ctx); err != nil || result.Already {
			return result, err
		}
	}
	if err := p.openKey(ctx, registry.RoleBuilder); err != nil {
		return BuildResult{}, err
	}
	if err := b.checkSpace(ctx); err != nil {
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
	b := &build{p: p, began: p.now(), scratch: scratch, budgets: budgets(s)}
	err = b.prepare(ctx, s)
	return b.plan, err
}

// budgets are what the spec gives the steps of toolchains.
func budgets(s *spec.Spec) map[string]toolchain.Budget {
	all := make(map[string]toolchain.Budget, len(s.Budgets))
	for name, b := range s.Budgets {
		all[name] = toolchain.Budget{Time: time.Duration(b.Time), Cores: int(b.Cores), MemoryBytes: int64(b.Memory), GPUs: int(b.GPUs)}
	}
	return all
}

func (b *build) prepare(ctx context.Context, s *spec.Spec) error {
	model, err := b.imported(ctx, s)
	if err != nil {
		return err
	}
	if b.inputs, err = readInputs(s, model, b.scratch); err != nil {
		return err
	}
	if said := b.inputs.Quantized; said != "" {
		b.p.step("read "+s.Source.Path.Written)("already quantized ("+said+"), passes through", nil)
	}
	b.tools = make(tools)
	if err := b.tools.open(ctx, b.p, hub); err != nil {
		return err
	}
	for _, e := range b.inputs.Engines {
		for _, name := range e.tools() {
			if err := b.tools.open(ctx, b.p, name); err != nil {
				return err
			}
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
	lanes := newLanes(1+len(b.engines), b.p.Progress)
	errs := make([]error, 1+len(b.engines))
	group, ctx := errgroup.WithContext(ctx)
	start := func(lane int, work func(p *Pipeline) error) {
		group.Go(func() error {
			defer lanes.end(lane)
			errs[lane] = work(b.p.lane(lanes, lane))
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
	set   registry.Set
	files []toolchain.OutputFile
	step  takenStep
}

// referenceID names the reference among the engines of a run.
const referenceID = "reference"

func (b *build) runReference(ctx context.Context, p *Pipeline) error {
	driver, job, kind, version := b.referenceRun()
	step, err := b.do(ctx, p, driver, "run the reference", job, job.Options)
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

func (b *build) makeEngine(ctx context.Context, p *Pipeline, planned PlannedEngine) (builtEngine, error) {
	label := planned.Variant + " for " + planned.Target.Name
	tool := b.tools[planned.Toolchain.Name]
	var err error
	if tool.Profile, err = tool.Profile.In(planned.Form); err != nil {
		return builtEngine{}, err
	}
	made := builtEngine{tool: tool, made: howMade{planned.Quantizer, planned.Quantize, planned.Compile}, engine: registry.Engine{
		Target: planned.Target, Toolchain: planned.Toolchain, Variant: planned.Variant, Precision: planned.Precision, NativeCode: tool.Profile.NativeCode, Providers: planned.Providers}}
	model := b.inputs.Model
	if planned.Quantize != nil {
		inputs, err := b.quantizerInputs(planned)
		if err != nil {
			return builtEngine{}, err
		}
		job := toolchain.Job{Verb: toolchain.VerbQuantize, Inputs: inputs, Options: planned.Quantize, Machine: machine(b.node)}
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
	made.takeRecords(step.outcome.Files)
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

// remembered says that nothing was done, and who did it if it was not this machine.
func remembered(o toolchain.Origin) string {
	if o.Cache == "" {
		return "cached"
	}
	return "cached in " + o.Cache
}

// do runs a job in a folder of its own, within the budget of its toolchain.
func (b *build) do(ctx context.Context, p *Pipeline, driver toolchain.Driver, name string, job toolchain.Job, options map[string]any) (takenStep, error) {
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
	switch {
	case err != nil:
		done("", err)
	case outcome.Cached:
		done(b.note(job, remembered(outcome.Origin)), nil)
	default:
		done(b.note(job, ""), nil, outcome.Enforced.String())
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
