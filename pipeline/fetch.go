package pipeline

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"mlpromote.dev/mlpromote/pipeline/cases"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// fetched is what a verification reads, each byte checked against its digest on the way.
type fetched struct {
	expected
	reference      material
	referenceModel loadable
	candidates     []candidate
	current        map[string]replaced // by label of the candidate
	next           destination
}

// expected is what the outputs of engines are held against.
type expected struct {
	limits        validators.Limits
	iface         validators.Interface
	cases, golden material     // the cases as engines take them
	given         cases.Set    // as the user gave them
	copies        map[int]bool // cases that have the inputs of an earlier one
	changed       map[int]bool // cases whose values were changed for engines; nil if the cases have the types that engines take
	scorer        *scorer      // of a metric that a program computes
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
	if err := got.given.FindCopies(got.iface); err != nil {
		return got, err
	}
	got.copies = got.given.Copies
	for _, c := range candidates {
		if c.model, err = f.engine(ctx, repository, c); err != nil {
			return got, err
		}
		if err := got.iface.CheckLabels(f.labels(c)); err != nil {
			return got, registry.Errorf(registry.CodeOf(err), "engine %s: %w", c.engine.Label(), err)
		}
		got.candidates = append(got.candidates, c)
	}
	got.current, got.next, err = f.current(ctx, got.candidates)
	return got, err
}

// convert puts cases in the place of those that hold other types than engines take.
func (f fetcher) convert(got *fetched) error {
	got.given = cases.Set{Record: *got.cases.set, Files: got.cases.inputs(toolchain.RoleCases)}
	dir := filepath.Join(f.scratch, "cases-for-engines")
	if err := got.given.Convert(got.iface, dir); err != nil || !got.given.Converted() {
		return err
	}
	got.cases.dir, got.cases.files, got.changed = dir, nil, got.given.Changed
	for _, in := range got.given.Engines() {
		got.cases.files = append(got.cases.files, registry.File{Path: in.Name, Digest: in.Digest, Size: in.Size})
	}
	return nil
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
	for _, part := range []struct {
		role registry.PartKind
		into *material
	}{{registry.PartReference, &got.reference}, {registry.PartCases, &got.cases}, {registry.PartGolden, &got.golden}} {
		ref, ok := parts[part.role]
		if !ok {
			return registry.Errorf(registry.CodeTrust, "sources %s of %s have no %s", f.release.Sources, repository, part.role)
		}
		if *part.into, err = f.material(ctx, repository, ref, string(part.role)); err != nil {
			return err
		}
	}
	if got.cases.set == nil || got.golden.set == nil {
		return registry.Errorf(registry.CodeTrust,
			"sources %s of %s do not describe their cases", f.release.Sources, repository)
	}
	if err := checkSets(*got); err != nil {
		return registry.Errorf(registry.CodeOf(err), "sources %s of %s: %w", f.release.Sources, repository, err)
	}
	if got.referenceModel, err = got.reference.loadable(f.host.tools[onnxRuntime].Profile, referenceID); err != nil {
		return err
	}
	if err := checkAgrees(got.iface, got.referenceModel); err != nil {
		return registry.Errorf(registry.CodeOf(err), "sources %s of %s: %w", f.release.Sources, repository, err)
	}
	program, err := f.program(ctx, repository, parts, got.limits.Accuracy)
	if err != nil {
		return err
	}
	got.scorer = newScorer(f.p, program, got.cases, got.golden)
	return f.convert(got)
}

// checkSets checks that the cases are inputs of the model, and that there are golden outputs of each: builders made both. Errors: CodeInvalid, and CodeTrust
// for two sets that do not go together.
func checkSets(got fetched) error {
	set := cases.Set{Record: *got.cases.set, Files: got.cases.inputs(toolchain.RoleCases)}
	given := got.iface
	given.AnyNumbers = true // the framework that made the golden outputs takes them
	if err := set.Check(given); err != nil {
		return err
	}
	golden := got.golden.set.Shards
	if !slices.EqualFunc(golden, set.Record.Shards, func(a, b registry.Shard) bool { return a.First == b.First && a.Count == b.Count }) {
		return registry.Errorf(registry.CodeTrust, "the golden outputs are of %s in %s: want those of the %s in %s that there are",
			registry.Count(got.golden.set.Count, "case"), registry.Count(len(golden), "file"),
			registry.Count(set.Record.Count, "case"), registry.Count(len(set.Record.Shards), "file"))
	}
	for _, shard := range golden {
		if err := checkGoldenShard(filepath.Join(got.golden.dir, filepath.FromSlash(shard.File)), shard.Count, got.iface); err != nil {
			return registry.Errorf(registry.CodeInvalid, "golden outputs %s: %w", shard.File, err)
		}
	}
	return nil
}

// checkGoldenShard checks that a file has every output of the model, for so many cases.
func checkGoldenShard(path string, count int, iface validators.Interface) error {
	f, err := tensor.Open(path, tensor.Limits{})
	if err != nil {
		return err
	}
	defer f.Close()
	for _, output := range iface.Outputs {
		info, ok := f.Info(output.Name)
		switch {
		case !ok:
			return fmt.Errorf("there is no output %q", output.Name)
		case len(info.Shape) == 0 || info.Shape[0] != int64(count):
			return fmt.Errorf("output %q has shape %v: want %d first, one for each case", output.Name, info.Shape, count)
		}
	}
	return nil
}

// program fetches the program that computes the metric of a limit; nil for a limit without one. Errors:
// CodeTrust for another program than the one that the limit names.
func (f fetcher) program(ctx context.Context, repository string,
	parts map[registry.PartKind]registry.PartRef, limit *validators.AccuracyLimit) (*toolchain.Input, error) {
	if !limit.ByProgram() {
		return nil, nil
	}
	ref, ok := parts[registry.PartProgram]
	if !ok {
		return nil, registry.Errorf(registry.CodeTrust, "sources %s of %s have no program, which computes %s", f.release.Sources, repository, limit.Metric)
	}
	m, err := f.material(ctx, repository, ref, string(registry.PartProgram))
	if err != nil {
		return nil, err
	}
	inputs := m.inputs(roleProgram)
	if len(inputs) != 1 || inputs[0].Digest != limit.Program {
		return nil, registry.Errorf(registry.CodeTrust,
			"the program among the sources %s of %s is not %s, which the limits name", f.release.Sources, repository, limit.Program)
	}
	return &inputs[0], nil
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

// labels is the content of an engine's labels.json, which was fetched; nil if it has none that can
// be one, which CheckLabels refuses where the interface has names.
func (f fetcher) labels(c candidate) []byte {
	file, err := os.Open(filepath.Join(f.scratch, c.id, validators.LabelsFile))
	if err != nil {
		return nil
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, validators.MaxNamesBytes+1))
	if err != nil {
		return nil
	}
	return data
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
