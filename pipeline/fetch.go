package pipeline

import (
	"context"
	"os"
	"path/filepath"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators"
)

// fetched is what a verification reads, each byte checked against its digest on the way.
type fetched struct {
	expected
	reference      material
	referenceModel loadable
	candidates     []candidate
	current        map[string]candidate // by label: the engine that the next environment has
}

// expected is what the outputs of engines are held against.
type expected struct {
	limits        validators.Limits
	iface         validators.Interface
	cases, golden material
}

// fetcher fetches the parts of a release into folders of their own.
type fetcher struct {
	p           *Pipeline
	environment string
	release     registry.Release
	host        host
	scratch     string
}

// all fetches limits, interface, sources, the candidates, and the engines that they are to replace.
func (f fetcher) all(ctx context.Context, candidates []candidate) (got fetched, err error) {
	done := f.p.step("fetch engines and cases")
	defer func() { done("", err) }()
	repository := registry.Repository(f.environment, f.release.Model)
	if got.limits, got.iface, err = f.documents(ctx, repository); err != nil {
		return got, err
	}
	if err := f.sources(ctx, &got); err != nil {
		return got, err
	}
	for _, c := range candidates {
		if c.model, err = f.engine(ctx, repository, c); err != nil {
			return got, err
		}
		got.candidates = append(got.candidates, c)
	}
	got.current, err = f.current(ctx)
	return got, err
}

func (f fetcher) documents(ctx context.Context, repository string) (l validators.Limits, i validators.Interface, err error) {
	limits, err := f.document(ctx, repository, f.release.Limits)
	if err != nil {
		return l, i, err
	}
	if l, err = validators.ParseLimits(limits); err != nil {
		return l, i, err
	}
	iface, err := f.document(ctx, repository, f.release.Interface)
	if err != nil {
		return l, i, err
	}
	i, err = validators.ParseInterface(iface)
	return l, i, err
}

// document reads the one file of a limits or interface part.
func (f fetcher) document(ctx context.Context, repository string, part registry.Digest) ([]byte, error) {
	m, err := f.material(ctx, repository, registry.PartRef{Digest: part}, "document-"+part.Encoded())
	if err != nil {
		return nil, err
	}
	if len(m.files) != 1 {
		return nil, registry.Errorf(registry.CodeTrust,
			"part %s of %s has %d files, want one", part, repository, len(m.files))
	}
	return os.ReadFile(filepath.Join(m.dir, filepath.FromSlash(m.files[0].Path)))
}

// sources fetches the reference, the cases and the golden outputs.
func (f fetcher) sources(ctx context.Context, got *fetched) error {
	repository, parts, err := f.sourceParts(ctx)
	if err != nil {
		return err
	}
	for role, into := range map[registry.PartKind]*material{
		registry.PartReference: &got.reference, registry.PartCases: &got.cases, registry.PartGolden: &got.golden,
	} {
		ref, ok := parts[role]
		if !ok {
			return registry.Errorf(registry.CodeTrust, "sources %s of %s have no %s", f.release.Sources, repository, role)
		}
		if *into, err = f.material(ctx, repository, ref, string(role)); err != nil {
			return err
		}
	}
	if got.cases.set == nil || got.golden.set == nil {
		return registry.Errorf(registry.CodeTrust,
			"sources %s of %s do not describe their cases", f.release.Sources, repository)
	}
	got.referenceModel, err = got.reference.loadable(f.host.tools[onnxRuntime].Profile, referenceID)
	return err
}

// sourceParts finds the parts of the sources index, and the repository that they are in.
func (f fetcher) sourceParts(ctx context.Context) (repository string, parts map[registry.PartKind]registry.PartRef, err error) {
	environments, err := f.p.Registry.Environments(ctx)
	if err != nil {
		return "", nil, err
	}
	repository = registry.SourcesRepository(environments.First().Name, f.release.Model)
	sources, err := f.p.Parts.Sources(ctx, repository, f.release.Sources)
	return repository, sources.Parts, err
}

func (f fetcher) engine(ctx context.Context, repository string, c candidate) (loadable, error) {
	m, err := f.material(ctx, repository, registry.PartRef{Digest: c.engine.Digest}, c.id)
	if err != nil {
		return loadable{}, err
	}
	return m.loadable(c.tool.Profile, c.id)
}

// current brings the engines that the next environment has now, which latency is
// compared with. Where there is none yet, there is nothing to compare with.
func (f fetcher) current(ctx context.Context) (map[string]candidate, error) {
	environments, err := f.p.Registry.Environments(ctx)
	if err != nil {
		return nil, err
	}
	for _, next := range environments.List {
		if next.From != f.environment {
			continue
		}
		r, err := f.p.Registry.Release(ctx, next.Name, f.release.Model, "")
		if registry.HasCode(err, registry.CodeNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		return f.replaced(ctx, next.Name, r)
	}
	return nil, nil
}

// replaced fetches the engines of another release that run here and that this release does not have.
func (f fetcher) replaced(ctx context.Context, environment string, r registry.Release) (map[string]candidate, error) {
	found := make(map[string]candidate)
	for _, e := range r.Engines {
		tool, have := f.host.tools[e.Toolchain.Name]
		if _, own := f.release.Engine(e.Digest); own || !have || len(e.Target.Match(f.host.node, f.host.node.Runtime())) > 0 {
			continue
		}
		c := candidate{id: currentID(len(found)), engine: e, tool: tool}
		var err error
		if c.model, err = f.engine(ctx, registry.Repository(environment, r.Model), c); err != nil {
			return nil, err
		}
		found[e.Label()] = c
	}
	return found, nil
}

// material fetches a part into a folder of its own.
func (f fetcher) material(ctx context.Context, repository string,
	ref registry.PartRef, name string) (material, error) {
	dir := filepath.Join(f.scratch, name)
	if err := os.Mkdir(dir, 0o755); err != nil {
		return material{}, err
	}
	fetch := f.p.Parts.Fetch
	if lender, ok := f.p.Parts.(registry.Lender); ok {
		fetch = lender.Lend
	}
	part, err := fetch(ctx, repository, ref.Digest, dir)
	return material{ref: ref, dir: dir, files: part.Files, set: part.Set}, err
}
