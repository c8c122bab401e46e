package pipeline

import (
	"context"
	"os"
	"path/filepath"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators"
)

// fetch brings everything that the verification reads, each byte checked against its
// digest on the way: limits, interface, sources, engines.
func (v *verification) fetch(ctx context.Context) (err error) {
	done := v.p.step("fetch engines and cases")
	defer func() { done("", err) }()
	repository := registry.Repository(v.environment, v.release.Model)
	if err := v.fetchDocuments(ctx, repository); err != nil {
		return err
	}
	if err := v.fetchSources(ctx); err != nil {
		return err
	}
	for i := range v.candidates {
		c := &v.candidates[i]
		if c.model, err = v.fetchEngine(ctx, repository, *c); err != nil {
			return err
		}
	}
	return v.fetchCurrent(ctx)
}

func (v *verification) fetchDocuments(ctx context.Context, repository string) error {
	limits, err := v.document(ctx, repository, v.release.Limits)
	if err != nil {
		return err
	}
	if v.limits, err = validators.ParseLimits(limits); err != nil {
		return err
	}
	iface, err := v.document(ctx, repository, v.release.Interface)
	if err != nil {
		return err
	}
	v.iface, err = validators.ParseInterface(iface)
	return err
}

// document reads the one file of a limits or interface part.
func (v *verification) document(ctx context.Context, repository string, part registry.Digest) ([]byte, error) {
	m, err := v.material(ctx, repository, registry.PartRef{Digest: part}, "document-"+part.Encoded())
	if err != nil {
		return nil, err
	}
	if len(m.files) != 1 {
		return nil, registry.Errorf(registry.CodeTrust,
			"part %s of %s has %d files, want one", part, repository, len(m.files))
	}
	return os.ReadFile(filepath.Join(m.dir, filepath.FromSlash(m.files[0].Path)))
}

func (v *verification) fetchSources(ctx context.Context) error {
	environments, err := v.p.Registry.Environments(ctx)
	if err != nil {
		return err
	}
	repository := registry.SourcesRepository(environments.First().Name, v.release.Model)
	sources, err := v.p.Parts.Sources(ctx, repository, v.release.Sources)
	if err != nil {
		return err
	}
	for role, into := range map[registry.PartKind]*material{
		registry.PartReference: &v.reference, registry.PartCases: &v.cases, registry.PartGolden: &v.golden,
	} {
		ref, ok := sources.Parts[role]
		if !ok {
			return registry.Errorf(registry.CodeTrust, "sources %s of %s have no %s", v.release.Sources, repository, role)
		}
		if *into, err = v.material(ctx, repository, ref, string(role)); err != nil {
			return err
		}
	}
	if v.cases.set == nil || v.golden.set == nil {
		return registry.Errorf(registry.CodeTrust,
			"sources %s of %s do not describe their cases", v.release.Sources, repository)
	}
	v.referenceModel, err = v.reference.loadable(v.tools[hub].Profile, referenceID)
	return err
}

func (v *verification) fetchEngine(ctx context.Context, repository string, c candidate) (loadable, error) {
	m, err := v.material(ctx, repository, registry.PartRef{Digest: c.engine.Digest}, c.id)
	if err != nil {
		return loadable{}, err
	}
	return m.loadable(c.tool.Profile, c.id)
}

// fetchCurrent brings the engines that the next environment has now, which latency is
// compared with. Where there is none yet, there is nothing to compare with.
func (v *verification) fetchCurrent(ctx context.Context) error {
	environments, err := v.p.Registry.Environments(ctx)
	if err != nil {
		return err
	}
	v.current = make(map[string]candidate)
	for _, next := range environments.List {
		if next.From != v.environment {
			continue
		}
		r, err := v.p.Registry.Release(ctx, next.Name, v.release.Model, "")
		if registry.HasCode(err, registry.CodeNotFound) {
			continue
		}
		if err != nil {
			return err
		}
		for _, e := range r.Engines {
			tool, have := v.tools[e.Toolchain.Name]
			if _, own := v.release.Engine(e.Digest); own || !have || len(e.Target.Match(v.node, v.node.Runtime())) > 0 {
				continue
			}
			c := candidate{id: currentID(len(v.current)), engine: e, tool: tool}
			if c.model, err = v.fetchEngine(ctx, registry.Repository(next.Name, r.Model), c); err != nil {
				return err
			}
			v.current[e.Label()] = c
		}
		return nil
	}
	return nil
}

// material fetches a part into a folder of its own.
func (v *verification) material(ctx context.Context, repository string,
	ref registry.PartRef, name string) (material, error) {
	dir := filepath.Join(v.scratch, name)
	if err := os.Mkdir(dir, 0o755); err != nil {
		return material{}, err
	}
	fetch := v.p.Parts.Fetch
	if lender, ok := v.p.Parts.(registry.Lender); ok {
		fetch = lender.Lend
	}
	part, err := fetch(ctx, repository, ref.Digest, dir)
	return material{ref: ref, dir: dir, files: part.Files, set: part.Set}, err
}
