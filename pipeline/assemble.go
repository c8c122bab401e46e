package pipeline

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"mlpromote.dev/mlpromote/pipeline/plan"
	"mlpromote.dev/mlpromote/pipeline/spec"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/tempdir"
	"mlpromote.dev/mlpromote/validators/format"
)

// AssembleResult is the release that parts made, or what is missing for it.
type AssembleResult struct {
	Ref       registry.Ref      `json:"-"`
	Release   registry.Release  `json:"release"`
	Unchanged bool              `json:"unchanged"` // the environment had this release
	Attached  int               `json:"attached"`
	Parts     []registry.Digest `json:"parts,omitempty"`
	Missing   []MissingEngine   `json:"missing,omitempty"`
	// Aside is what there is beside, and does not count.
	Aside   []SetAside    `json:"aside,omitempty"`
	Elapsed time.Duration `json:"elapsedNs"`
}

// MissingEngine is an engine of the spec that no part has.
type MissingEngine struct {
	Label  string `json:"label"`
	Target string `json:"target"`
	Runner string `json:"runner,omitempty"` // label of the runners that can build it, as the spec says
}

// Assemble puts the release together from the parts that builds of some targets stored, and publishes it. It needs no
// toolchain. The same parts make the same release, whoever assembles. Errors: CodeUnavailable, with what is missing in
// the result, if an engine of the spec is in no part.
func (p *Pipeline) Assemble(ctx context.Context, s *spec.Spec) (AssembleResult, error) {
	began := p.now()
	temp, err := tempdir.New("assemble")
	if err != nil {
		return AssembleResult{}, err
	}
	defer temp.Remove()
	scratch := temp.Path
	b := build{p: p, began: began}
	result, err := b.assemble(ctx, s, worker{scratch, budgets(s)})
	result.Elapsed = p.now().Sub(began)
	return result, err
}

func (b *build) assemble(ctx context.Context, s *spec.Spec, w worker) (AssembleResult, error) {
	if err := b.readWanted(ctx, s, w); err != nil {
		return AssembleResult{}, err
	}
	if done, err := b.parts.assembled(ctx, b.p.Registry); err != nil || done.Unchanged {
		return AssembleResult{Ref: done.Ref, Release: done.Release, Unchanged: done.Unchanged}, err
	}
	parts, aside, err := b.parts.find(ctx, b.p.Registry)
	if err != nil {
		return AssembleResult{}, err
	}
	engines, more := choose(parts)
	result := AssembleResult{Aside: slices.Concat(aside, more)}
	if result.Missing = b.parts.missing(engines, s); len(result.Missing) > 0 {
		return result, incomplete(*b.parts, result)
	}
	if err := b.inspect(ctx, engines, w.scratch); err != nil {
		return result, err
	}
	if err := b.p.openKey(ctx, registry.RoleBuilder, b.parts.environment, b.parts.common.Model); err != nil {
		return result, err
	}
	if b.node, err = b.p.Node(ctx, nil); err != nil {
		return result, err
	}
	result.Release, err = b.putTogether(ctx, engines)
	if err != nil {
		return result, err
	}
	result.Parts = b.assembled
	if result.Attached, err = b.attest(ctx, b.parts.environment, result.Release); err != nil {
		return result, err
	}
	head, err := b.p.Registry.Publish(ctx, registry.Publication{Model: b.plan.Model, Release: result.Release.Digest})
	result.Ref = registry.Ref{Environment: b.parts.environment, Model: b.plan.Model, Tag: head.Version, Digest: result.Release.Digest}
	return result, err
}

// inspect looks at the bytes of engines that other machines built, before they become a release that is signed here. A
// service has looked when they were pushed. Errors: CodeTrust, with the engine and its part.
func (b *build) inspect(ctx context.Context, engines map[string]chosen, scratch string) error {
	if b.p.Inspected {
		return nil
	}
	repository := registry.Repository(b.parts.environment, b.parts.common.Model)
	for _, label := range slices.Sorted(maps.Keys(engines)) {
		c := engines[label]
		dir := filepath.Join(scratch, "inspected")
		if err := os.Mkdir(dir, 0o700); err != nil {
			return err
		}
		part, err := b.p.Parts.Fetch(ctx, repository, c.engine.Digest, dir)
		if err == nil {
			err = format.CheckPart(dir, part)
		}
		if err != nil {
			return registry.Errorf(registry.CodeOf(err), "engine %s of part %s: %w", label, c.part.release.Digest, err)
		}
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
	}
	return nil
}

// readWanted reads what the spec names, and what its parts have in common.
func (b *build) readWanted(ctx context.Context, s *spec.Spec, w worker) error {
	model, err := b.p.imported(ctx, s, w)
	if err != nil {
		return err
	}
	if b.inputs, err = readInputs(s, model, w.scratch); err != nil {
		return err
	}
	if b.parts, err = b.inputs.wantedParts(b.inputs.Engines); err != nil {
		return err
	}
	if b.origin, err = b.p.originOf(ctx, s); err != nil {
		return err
	}
	environments, err := b.p.Registry.Environments(ctx)
	if err != nil {
		return err
	}
	b.parts.environment, b.parts.commit = environments.First().Name, b.git().Commit
	return nil
}

// putTogether stores the index of the release, with the plan that its parts have together.
func (b *build) putTogether(ctx context.Context, engines map[string]chosen) (registry.Release, error) {
	byPart := make(map[registry.Digest]plan.Part)
	var refs []registry.PartRef
	var first foundPart
	for _, r := range b.parts.asked {
		c := engines[r.Label()]
		d := c.part.release.Digest
		if first.recorded == 0 {
			first = c.part
		}
		used, ok := byPart[d]
		if !ok {
			used = plan.Part{Tools: c.part.said.Tools}
			b.assembled = append(b.assembled, d)
		}
		at := slices.IndexFunc(c.part.said.Engines, func(e plan.Engine) bool { return e.Label() == r.Label() })
		used.Engines = append(used.Engines, c.part.said.Engines[at])
		byPart[d] = used
		refs = append(refs, registry.PartRef{Role: registry.PartEngine, Digest: c.engine.Digest, Size: c.engine.Size})
	}
	slices.Sort(b.assembled)
	var used []plan.Part
	for _, d := range b.assembled {
		used = append(used, byPart[d])
	}
	var err error
	if b.plan, err = b.parts.common.Join(b.parts.asked, used...); err != nil {
		return registry.Release{}, err
	}
	if b.p.Planned != nil {
		b.p.Planned(b.plan)
	}
	return b.pushAssembled(ctx, first.release.Sources, refs)
}

// pushAssembled stores limits, interface and index. An engine that names others is refused.
func (b *build) pushAssembled(ctx context.Context, sources registry.Digest, refs []registry.PartRef) (registry.Release, error) {
	repository := registry.Repository(b.parts.environment, b.plan.Model)
	limits, err := b.pushDocument(ctx, repository, registry.PartLimits, b.plan.Limits)
	if err != nil {
		return registry.Release{}, err
	}
	iface, err := b.pushDocument(ctx, repository, registry.PartInterface, b.plan.Interface)
	if err != nil {
		return registry.Release{}, err
	}
	d, err := b.p.Parts.Assemble(ctx, repository, registry.Assembly{
		Model: b.plan.Model, Version: b.plan.Version, Revision: 1, Sources: sources, Plan: b.plan.Digest, Parts: append(refs, limits, iface)})
	if err != nil {
		return registry.Release{}, err
	}
	return b.p.Registry.Release(ctx, b.parts.environment, b.plan.Model, string(d))
}

// missing lists the engines of the spec that no part has, in the order in which nodes would get them.
func (w wantedParts) missing(engines map[string]chosen, s *spec.Spec) []MissingEngine {
	runners := make(map[string]string)
	for _, t := range s.Targets {
		runners[t.Name] = t.Runner
	}
	var all []MissingEngine
	for _, r := range w.asked {
		if _, ok := engines[r.Label()]; !ok {
			all = append(all, MissingEngine{Label: r.Label(), Target: r.Target.Name, Runner: runners[r.Target.Name]})
		}
	}
	return all
}

// incomplete is the error of a release that cannot be put together yet.
func incomplete(w wantedParts, r AssembleResult) error {
	var lines, targets []string
	for _, m := range r.Missing {
		line := m.Label
		if m.Runner != "" {
			line += " (runner " + m.Runner + ")"
		}
		lines = append(lines, line)
		if !slices.Contains(targets, m.Target) {
			targets = append(targets, m.Target)
		}
	}
	text := fmt.Sprintf("%s %s is not complete: of %s, no part has these %d: %s", w.common.Model, w.common.Version,
		registry.Count(len(w.asked), "engine"), len(r.Missing), strings.Join(lines, ", "))
	for _, a := range r.Aside {
		text += "\n  set aside: " + string(a.Part) + ": " + a.Reason
	}
	return registry.WithHint(registry.Errorf(registry.CodeUnavailable, "%s", text),
		"run mlpromote build --target %s where its toolchain is, at the same commit, and assemble again", strings.Join(targets, ","))
}
