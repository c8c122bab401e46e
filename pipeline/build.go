package pipeline

import (
	"context"
	"os"
	"time"

	"mlpromote.dev/mlpromote/pipeline/plan"
	"mlpromote.dev/mlpromote/pipeline/spec"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
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
	inputs  inputs
	plan    plan.Plan

	ranges           knownRanges // and records, of the last build
	records          []tuningRecord
	golden           goldenSet
	referenceLatency registry.Latency
	engines          []builtEngine
	warnings         []string

	sources       registry.Digest
	reference     registry.PartRef
	limits, iface registry.PartRef
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
		if result, err := b.already(ctx); err != nil || result.Unchanged {
			return result, err
		}
	}
	if p.Planned != nil {
		p.Planned(b.plan)
	}
	if err := p.openKey(ctx, registry.RoleBuilder); err != nil {
		return BuildResult{}, err
	}
	if err := b.checkSpace(ctx); err != nil {
		return BuildResult{}, err
	}
	err = b.make(ctx)
	p.warn(b.warnings...)
	if err != nil {
		return BuildResult{}, err
	}
	return b.store(ctx)
}

// Plan says what Build would do, and does nothing but read.
func (p *Pipeline) Plan(ctx context.Context, s *spec.Spec) (plan.Plan, error) {
	scratch, err := os.MkdirTemp("", "mlpromote-plan-*")
	if err != nil {
		return plan.Plan{}, err
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
		all[name] = toolchain.Budget{Time: time.Duration(b.Time),
			Cores: int(b.Cores), MemoryBytes: int64(b.Memory), GPUs: int(b.GPUs)}
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
	b.p.warn(b.inputs.Cases.Warnings...)
	if said := b.inputs.Quantized; said != "" {
		b.p.step("read "+s.Source.Path.Written)("already quantized ("+said+"), passes through", nil)
	}
	b.tools = make(tools)
	if err := b.tools.open(ctx, b.p, hub); err != nil {
		return err
	}
	for _, e := range b.inputs.Engines {
		for _, name := range e.Tools() {
			if err := b.tools.open(ctx, b.p, name); err != nil {
				return err
			}
		}
	}
	seen, err := b.tools.planning(ctx)
	if err != nil {
		return err
	}
	b.plan, err = plan.New(b.inputs.Inputs, seen)
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
		Ref:     registry.Ref{Environment: first, Model: r.Model, Tag: r.Tag(), Digest: r.Digest},
		Release: r, Plan: r.Plan, Unchanged: said.Allowed(), Elapsed: b.p.now().Sub(b.began),
	}, nil
}
