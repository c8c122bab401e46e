package build

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"mlpromote.dev/mlpromote/pipeline/ingest"
	"mlpromote.dev/mlpromote/pipeline/plan"
	"mlpromote.dev/mlpromote/pipeline/run"
	"mlpromote.dev/mlpromote/pipeline/spec"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/storage"
	"mlpromote.dev/mlpromote/registry/tempdir"
	"mlpromote.dev/mlpromote/validators/format"
)

// AssembleResult is the release that parts made, or what is missing for it.
type AssembleResult struct {
	Ref       registry.Ref      `json:"-"`
	Release   artifact.Release  `json:"release"`
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
func Assemble(ctx context.Context, env *run.Env, s *spec.Spec) (AssembleResult, error) {
	began := env.Time()
	temp, err := tempdir.New("assemble")
	if err != nil {
		return AssembleResult{}, err
	}
	defer temp.Remove()
	scratch := temp.Path
	result, err := assemble(ctx, env, s, run.Worker{Scratch: scratch, Budgets: run.Budgets(s)}, began)
	result.Elapsed = env.Time().Sub(began)
	return result, err
}

func assemble(ctx context.Context, env *run.Env, s *spec.Spec, w run.Worker, began time.Time) (AssembleResult, error) {
	in, wanted, origin, err := readWanted(ctx, env, s, w)
	if err != nil {
		return AssembleResult{}, err
	}
	if done, err := wanted.assembled(ctx, env.Registry); err != nil || done.Unchanged {
		return AssembleResult{Ref: done.Ref, Release: done.Release, Unchanged: done.Unchanged}, err
	}
	parts, aside, err := wanted.find(ctx, env.Registry)
	if err != nil {
		return AssembleResult{}, err
	}
	engines, more := choose(parts)
	result := AssembleResult{Aside: slices.Concat(aside, more)}
	if result.Missing = wanted.missing(engines, s); len(result.Missing) > 0 {
		return result, incomplete(wanted, result)
	}
	if err := inspect(ctx, env, wanted, engines, w.Scratch); err != nil {
		return result, err
	}
	if err := env.UseKey(ctx, evidence.RoleBuilder, wanted.environment, wanted.common.Model); err != nil {
		return result, err
	}
	node, err := env.Node(ctx, nil)
	if err != nil {
		return result, err
	}
	whole, err := wanted.putTogether(engines)
	if err != nil {
		return result, err
	}
	if env.Planned != nil {
		env.Planned(whole.plan)
	}
	b := making{env: env, began: began, Maker: Maker{Prepared: Prepared{Inputs: in, Plan: whole.plan, parts: &wanted}, Node: node},
		origin: origin, assembled: whole.parts}
	result.Release, err = pushAssembled(ctx, b, whole)
	if err != nil {
		return result, err
	}
	result.Parts = whole.parts
	if result.Attached, err = attest(ctx, b, wanted.environment, stored{Release: result.Release}); err != nil {
		return result, err
	}
	head, err := env.Registry.Publish(ctx, api.Publication{Model: whole.plan.Model, Release: result.Release.Digest})
	result.Ref = registry.Ref{Environment: wanted.environment, Model: whole.plan.Model, Tag: head.Version, Digest: result.Release.Digest}
	return result, err
}

// inspect looks at the bytes of engines that other machines built, and recomputes their image forms, before they become a
// release that is signed here. A service has looked when they were pushed. Errors: CodeTrust, with the engine and its part.
func inspect(ctx context.Context, env *run.Env, wanted wantedParts, engines map[string]chosen, scratch string) error {
	if env.Inspected {
		return nil
	}
	repository := registry.Repository(wanted.environment, wanted.common.Model)
	for _, label := range slices.Sorted(maps.Keys(engines)) {
		c := engines[label]
		dir := filepath.Join(scratch, "inspected")
		if err := os.Mkdir(dir, 0o700); err != nil {
			return err
		}
		part, err := env.Parts.Fetch(ctx, repository, c.engine.Digest, dir)
		if err == nil {
			err = format.CheckPart(dir, part)
		}
		if err == nil {
			err = run.CheckImage(ctx, dir, c.engine, part.Files)
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

// readWanted reads what the spec names, what its parts have in common, and where the spec comes from.
func readWanted(ctx context.Context, env *run.Env, s *spec.Spec, w run.Worker) (ingest.Inputs, wantedParts, *evidence.Origin, error) {
	model, err := ingest.ImportSource(ctx, env, s, w)
	if err != nil {
		return ingest.Inputs{}, wantedParts{}, nil, err
	}
	in, err := ingest.Read(s, model, w.Scratch)
	if err != nil {
		return ingest.Inputs{}, wantedParts{}, nil, err
	}
	if err := artifact.CheckEngines(len(in.Engines)); err != nil {
		return ingest.Inputs{}, wantedParts{}, nil, err
	}
	wanted, err := newWantedParts(in, in.Engines)
	if err != nil {
		return ingest.Inputs{}, wantedParts{}, nil, err
	}
	origin, err := originOf(ctx, env, s)
	if err != nil {
		return ingest.Inputs{}, wantedParts{}, nil, err
	}
	environments, err := env.Registry.Environments(ctx)
	if err != nil {
		return ingest.Inputs{}, wantedParts{}, nil, err
	}
	wanted.environment, wanted.commit = environments.First().Name, gitOf(origin).Commit
	return in, *wanted, origin, nil
}

// joined is a release that parts make together.
type joined struct {
	plan    plan.Plan
	parts   []registry.Digest // that have its engines, in order
	sources registry.Digest   // of the first part
	engines []storage.PartRef // and their image forms
}

// putTogether finds the plan that parts have together, and their engines in the order of the spec.
func (w wantedParts) putTogether(engines map[string]chosen) (joined, error) {
	byPart := make(map[registry.Digest]plan.Part)
	var all joined
	for i, r := range w.asked {
		c := engines[r.Label()]
		d := c.part.release.Digest
		if i == 0 {
			all.sources = c.part.release.Sources
		}
		used, ok := byPart[d]
		if !ok {
			used = plan.Part{Tools: c.part.said.Tools}
			all.parts = append(all.parts, d)
		}
		at := slices.IndexFunc(c.part.said.Engines, func(e plan.Engine) bool { return e.Label() == r.Label() })
		used.Engines = append(used.Engines, c.part.said.Engines[at])
		byPart[d] = used
		all.engines = append(all.engines, storage.PartRef{Role: artifact.PartEngine, Digest: c.engine.Digest, Size: c.engine.Size})
		if image := c.engine.Image; image.Digest != "" {
			all.engines = append(all.engines, storage.PartRef{Role: artifact.PartImage, Digest: image.Digest, Size: image.Size})
		}
	}
	slices.Sort(all.parts)
	var used []plan.Part
	for _, d := range all.parts {
		used = append(used, byPart[d])
	}
	var err error
	all.plan, err = w.common.Join(w.asked, used...)
	return all, err
}

// pushAssembled stores limits, interface and index. An engine that names others is refused.
func pushAssembled(ctx context.Context, b making, all joined) (artifact.Release, error) {
	repository := registry.Repository(b.parts.environment, b.Plan.Model)
	limits, err := pushDocument(ctx, b, repository, artifact.PartLimits, b.Plan.Limits)
	if err != nil {
		return artifact.Release{}, err
	}
	iface, err := pushDocument(ctx, b, repository, artifact.PartInterface, b.Plan.Interface)
	if err != nil {
		return artifact.Release{}, err
	}
	d, err := b.env.Parts.Assemble(ctx, repository, storage.Assembly{
		Model: b.Plan.Model, Version: b.Plan.Version, Revision: 1, Sources: all.sources, Plan: b.Plan.Digest, Parts: append(all.engines, limits, iface)})
	if err != nil {
		return artifact.Release{}, err
	}
	return b.env.Registry.Release(ctx, b.parts.environment, b.Plan.Model, string(d))
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
