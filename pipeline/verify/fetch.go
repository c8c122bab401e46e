package verify

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"mlpromote.dev/mlpromote/pipeline/cases"
	"mlpromote.dev/mlpromote/pipeline/run"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/storage"
	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/tensor/tensorfile"
)

// fetcher fetches the parts of a release into folders of their own.
type fetcher struct {
	env         *run.Env
	environment string
	release     artifact.Release
	host        Host
	scratch     string
}

// all fetches limits, interface, sources, the candidates, and the engines that they are to replace.
func (f fetcher) all(ctx context.Context, candidates []run.Candidate) (got Fetched, err error) {
	done := f.env.Step("fetch engines and cases")
	defer func() { done("", err) }()
	repository := registry.Repository(f.environment, f.release.Model)
	if got.Limits, got.Iface, err = f.documents(ctx, repository); err != nil {
		return got, err
	}
	if err := f.sources(ctx, &got); err != nil {
		return got, err
	}
	if err := got.given.FindCopies(got.Iface); err != nil {
		return got, err
	}
	got.copies = got.given.Copies
	for _, c := range candidates {
		if c.Model, err = f.engine(ctx, repository, c); err != nil {
			return got, err
		}
		if err := got.Iface.CheckLabels(f.labels(c)); err != nil {
			return got, registry.Errorf(registry.CodeOf(err), "engine %s: %w", c.Engine.Label(), err)
		}
		c.Tool.Labels = got.Cases.Set.Labels
		got.candidates = append(got.candidates, c)
	}
	got.current, got.next, err = f.current(ctx, got.candidates)
	for label, was := range got.current {
		was.Tool.Labels = got.Cases.Set.Labels
		got.current[label] = was
	}
	return got, err
}

// convert puts cases in the place of those that hold other types than engines take.
func (f fetcher) convert(got *Fetched) error {
	got.given = cases.Set{Record: *got.Cases.Set, Files: got.Cases.Inputs(toolchain.RoleCases)}
	dir := filepath.Join(f.scratch, "cases-for-engines")
	if err := got.given.Convert(got.Iface, dir); err != nil || !got.given.Converted() {
		return err
	}
	got.Cases.Dir, got.Cases.Files, got.Changed = dir, nil, got.given.Changed
	for _, in := range got.given.Engines() {
		got.Cases.Files = append(got.Cases.Files, artifact.File{Path: in.Name, Digest: in.Digest, Size: in.Size})
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
	m, err := f.material(ctx, repository, storage.PartRef{Digest: part}, "document-"+part.Encoded())
	if err != nil {
		return nil, err
	}
	if len(m.Files) != 1 {
		return nil, registry.Errorf(registry.CodeTrust,
			"part %s of %s has %d files, want one", part, repository, len(m.Files))
	}
	return os.ReadFile(filepath.Join(m.Dir, filepath.FromSlash(m.Files[0].Path)))
}

// sources fetches the reference, the cases and the golden outputs.
func (f fetcher) sources(ctx context.Context, got *Fetched) error {
	repository, parts, err := f.sourceParts(ctx)
	if err != nil {
		return err
	}
	for _, part := range []struct {
		role artifact.PartKind
		into *run.Material
	}{{artifact.PartReference, &got.Reference}, {artifact.PartCases, &got.Cases}, {artifact.PartGolden, &got.Golden}} {
		ref, ok := parts[part.role]
		if !ok {
			return registry.Errorf(registry.CodeTrust, "sources %s of %s have no %s", f.release.Sources, repository, part.role)
		}
		if *part.into, err = f.material(ctx, repository, ref, string(part.role)); err != nil {
			return err
		}
	}
	if got.Cases.Set == nil || got.Golden.Set == nil {
		return registry.Errorf(registry.CodeTrust,
			"sources %s of %s do not describe their cases", f.release.Sources, repository)
	}
	if err := checkSets(*got); err != nil {
		return registry.Errorf(registry.CodeOf(err), "sources %s of %s: %w", f.release.Sources, repository, err)
	}
	if got.ReferenceModel, err = got.Reference.Loadable(f.host.Tools[run.OnnxRuntime].Profile, run.ReferenceID); err != nil {
		return err
	}
	if err := run.CheckInterface(got.Iface, got.ReferenceModel); err != nil {
		return registry.Errorf(registry.CodeOf(err), "sources %s of %s: %w", f.release.Sources, repository, err)
	}
	program, err := f.program(ctx, repository, parts, got.Limits.Accuracy)
	if err != nil {
		return err
	}
	got.Scorer = run.NewScorer(f.env, program, got.Cases, got.Golden)
	return f.convert(got)
}

// checkSets checks that the cases are inputs of the model, and that there are golden outputs of each: builders made both. Errors: CodeInvalid, and CodeTrust
// for two sets that do not go together.
func checkSets(got Fetched) error {
	set := cases.Set{Record: *got.Cases.Set, Files: got.Cases.Inputs(toolchain.RoleCases)}
	given := got.Iface
	given.AnyNumbers = true // the framework that made the golden outputs takes them
	if err := set.Check(given); err != nil {
		return err
	}
	golden := got.Golden.Set.Shards
	if !slices.EqualFunc(golden, set.Record.Shards, func(a, b artifact.Shard) bool { return a.First == b.First && a.Count == b.Count }) {
		return registry.Errorf(registry.CodeTrust, "the golden outputs cover %s in %s, but the release has %s in %s",
			registry.Count(got.Golden.Set.Count, "case"), registry.Count(len(golden), "file"),
			registry.Count(set.Record.Count, "case"), registry.Count(len(set.Record.Shards), "file"))
	}
	for _, shard := range golden {
		if err := checkGoldenShard(filepath.Join(got.Golden.Dir, filepath.FromSlash(shard.File)), shard.Count, got.Iface); err != nil {
			return registry.Errorf(registry.CodeInvalid, "golden outputs %s: %w", shard.File, err)
		}
	}
	return nil
}

// checkGoldenShard checks that a file has every output of the model, for so many cases.
func checkGoldenShard(path string, count int, iface validators.Interface) error {
	f, err := tensorfile.Open(path, tensorfile.Limits{})
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
	parts map[artifact.PartKind]storage.PartRef, limit *validators.AccuracyLimit) (*toolchain.Input, error) {
	if !limit.ByProgram() {
		return nil, nil
	}
	ref, ok := parts[artifact.PartProgram]
	if !ok {
		return nil, registry.Errorf(registry.CodeTrust, "sources %s of %s have no program, which computes %s", f.release.Sources, repository, limit.Metric)
	}
	m, err := f.material(ctx, repository, ref, string(artifact.PartProgram))
	if err != nil {
		return nil, err
	}
	inputs := m.Inputs(run.RoleProgram)
	if len(inputs) != 1 || inputs[0].Digest != limit.Program {
		return nil, registry.Errorf(registry.CodeTrust,
			"the program among the sources %s of %s is not %s, which the limits name", f.release.Sources, repository, limit.Program)
	}
	return &inputs[0], nil
}

// sourceParts finds the parts of the sources index, and the repository that they are in.
func (f fetcher) sourceParts(ctx context.Context) (repository string, parts map[artifact.PartKind]storage.PartRef, err error) {
	environments, err := f.env.Registry.Environments(ctx)
	if err != nil {
		return "", nil, err
	}
	repository = registry.SourcesRepository(environments.First().Name, f.release.Model)
	sources, err := f.env.Parts.Sources(ctx, repository, f.release.Sources)
	return repository, sources.Parts, err
}

func (f fetcher) engine(ctx context.Context, repository string, c run.Candidate) (run.Loadable, error) {
	m, err := f.material(ctx, repository, storage.PartRef{Digest: c.Engine.Digest}, c.ID)
	if err == nil {
		err = run.CheckImage(ctx, m.Dir, c.Engine, m.Files)
	}
	if err != nil {
		return run.Loadable{}, err
	}
	return m.Loadable(c.Tool.Profile, c.ID)
}

// labels is the content of an engine's labels.json, which was fetched; nil if it has none that can
// be one, which CheckLabels refuses where the interface has names.
func (f fetcher) labels(c run.Candidate) []byte {
	file, err := os.Open(filepath.Join(f.scratch, c.ID, validators.LabelsFile))
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
	ref storage.PartRef, name string) (run.Material, error) {
	dir := filepath.Join(f.scratch, name)
	if err := os.Mkdir(dir, 0o755); err != nil {
		return run.Material{}, err
	}
	fetch := f.env.Parts.Fetch
	if lender, ok := f.env.Parts.(storage.Lender); ok {
		fetch = lender.Lend
	}
	part, err := fetch(ctx, repository, ref.Digest, dir)
	return run.Material{Ref: ref, Dir: dir, Files: part.Files, Set: part.Set}, err
}
