package pipeline

import (
	"bytes"
	"context"
	"io"
	"os"
	"slices"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
)

// store pushes what was made, signs it and moves the first environment's head. A
// crash before the last step leaves the old head; a re-run finishes the job.
func (b build) store(ctx context.Context) (BuildResult, error) {
	environments, err := b.p.Registry.Environments(ctx)
	if err != nil {
		return BuildResult{}, err
	}
	first := environments.First().Name
	done := b.p.step("store in " + first)
	r, err := b.push(ctx, first, nil)
	done("", err)
	if err != nil {
		return BuildResult{}, err
	}
	attached, err := b.attest(ctx, first, r)
	if err != nil {
		return BuildResult{}, err
	}
	head, err := b.p.Registry.Publish(ctx, registry.Publication{Model: b.plan.Model, Release: r.Digest})
	if err != nil {
		return BuildResult{}, err
	}
	steps, cached := b.count()
	compressions := make(map[string]*Compression)
	for _, e := range b.engines {
		if e.compression != nil {
			compressions[e.engine.Label()] = e.compression
		}
	}
	classes := make(map[string]registry.Reproducibility)
	for _, e := range b.engines {
		if class := b.reproducible(e); class != "" {
			classes[e.engine.Label()] = class
		}
	}
	return BuildResult{
		Reproducible: classes, Compression: compressions,
		Ref:     registry.Ref{Environment: first, Model: b.plan.Model, Tag: head.Version, Digest: r.Digest},
		Release: r.Release, Plan: b.plan.Digest, Steps: steps, Cached: cached, Attached: attached,
		CrossCheck: &b.golden.crossCheck, ReferenceLatency: b.golden.latency, Elapsed: b.p.now().Sub(b.began),
	}, nil
}

func (b build) count() (steps, cached int) {
	var all []takenStep
	if b.known == nil {
		all = append(all, b.golden.step)
	}
	if b.plan.Import != nil {
		all = append(all, b.imported)
	}
	if b.golden.crossChecking.driver != nil {
		all = append(all, b.golden.crossChecking)
	}
	for _, e := range b.engines {
		all = append(all, e.steps...)
	}
	for _, s := range all {
		if s.outcome.Cached {
			cached++
		}
	}
	return len(all), cached
}

// stored is a release that was pushed, and waits to be signed.
type stored struct {
	registry.Release
	calibration registry.Digest // the manifest of the calibration in the sources; empty for none
}

// push stores sources and limits first, since every engine names their digests. given are the sources of the release that
// this part belongs to; nil stores them. Of a build of some targets it makes a part of a release.
func (b build) push(ctx context.Context, environment string, given *registry.Sources) (stored, error) {
	repository := registry.Repository(environment, b.plan.Model)
	var part registry.Digest
	if b.parts != nil {
		part = b.parts.key
	}
	var sources registry.Digest
	var roles map[registry.PartKind]registry.Digest
	var err error
	if in := registry.SourcesRepository(environment, b.plan.Model); given != nil {
		sources, roles, err = b.checkSources(ctx, in, *given)
	} else {
		sources, roles, err = b.pushSources(ctx, in)
	}
	if err != nil {
		return stored{}, err
	}
	reference := roles[registry.PartReference]
	limits, err := b.pushDocument(ctx, repository, registry.PartLimits, b.plan.Limits)
	if err != nil {
		return stored{}, err
	}
	iface, err := b.pushDocument(ctx, repository, registry.PartInterface, b.plan.Interface)
	if err != nil {
		return stored{}, err
	}
	labels, err := b.inputs.labels()
	if err != nil {
		return stored{}, err
	}
	parts := []registry.PartRef{limits, iface}
	for _, e := range b.engines {
		engine := e.engine
		engine.Reference, engine.Sources, engine.Limits, engine.Interface = reference, sources, limits.Digest, iface.Digest
		files := slices.Concat(outputFiles(e.files), b.inputs.assets(), labels, b.inputs.operators())
		part, err := b.p.Parts.PutPart(ctx, repository, registry.Part{
			Role: registry.PartEngine, Files: files, Engine: engine, Model: b.plan.Model, Format: e.tool.Profile.Format})
		if err != nil {
			return stored{}, err
		}
		parts = append(parts, part)
	}
	d, err := b.p.Parts.Assemble(ctx, repository, registry.Assembly{
		Model: b.plan.Model, Version: b.plan.Version, Revision: 1, Sources: sources, Plan: b.plan.Digest, Part: part, Parts: parts})
	if err != nil {
		return stored{}, err
	}
	r, err := b.p.Registry.Release(ctx, environment, b.plan.Model, string(d))
	return stored{r, roles[registry.PartCalibration]}, err
}

// pushSources stores what engines are made of and compared with. It returns the digests of the
// sources index and of the parts in it.
func (b build) pushSources(ctx context.Context, repository string) (sources registry.Digest, roles map[registry.PartKind]registry.Digest, err error) {
	golden := b.golden.set
	parts := append(b.writtenSources(), registry.Part{Role: registry.PartGolden, Files: shardFiles(b.golden.set, b.golden.files), Set: &golden})
	tuning, err := b.tuningPart()
	if err != nil {
		return "", nil, err
	}
	if len(tuning.Files) > 0 {
		parts = append(parts, tuning)
	}
	var refs []registry.PartRef
	roles = make(map[registry.PartKind]registry.Digest)
	for _, part := range parts {
		ref, err := b.p.Parts.PutPart(ctx, repository, part)
		if err != nil {
			return "", nil, err
		}
		roles[part.Role] = ref.Digest
		refs = append(refs, ref)
	}
	sources, err = b.p.Parts.Assemble(ctx, repository,
		registry.Assembly{Model: b.plan.Model, Parts: refs, Tags: []string{b.plan.Version}})
	return sources, roles, err
}

// writtenSources are the sources that the spec names, which no step of a build made.
func (b build) writtenSources() []registry.Part {
	cases := b.inputs.Cases.Record
	parts := []registry.Part{
		{Role: registry.PartReference, Files: append(b.referenceFiles(), b.inputs.operators()...), Model: b.plan.Model, Format: onnxFormat,
			Engine: registry.Engine{Variant: referenceID, Precision: b.plan.ReferencePrecision}},
		{Role: registry.PartCases, Files: inputFiles(b.inputs.Cases.Files), Set: &cases},
	}
	if len(b.inputs.Calibration.Files) > 0 {
		calibration := b.inputs.Calibration.Record
		parts = append(parts,
			registry.Part{Role: registry.PartCalibration, Files: inputFiles(b.inputs.Calibration.Files), Set: &calibration})
	}
	if program := b.inputs.program; program != nil {
		parts = append(parts, registry.Part{Role: registry.PartProgram, Files: inputFiles([]toolchain.Input{*program})})
	}
	return parts
}

func (b build) pushDocument(ctx context.Context, repository string,
	role registry.PartKind, document any) (registry.PartRef, error) {
	data, err := registry.CanonicalJSON(document)
	if err != nil {
		return registry.PartRef{}, err
	}
	file := bytesFile(string(role)+".json", digest.FromBytes(data), data)
	return b.p.Parts.PutPart(ctx, repository, registry.Part{Role: role, Files: []registry.PartFile{file}})
}

// bytesFile is a file of these bytes, in memory.
func bytesFile(name string, d registry.Digest, data []byte) registry.PartFile {
	return registry.PartFile{
		File: registry.File{Path: name, Digest: d, Size: int64(len(data))},
		Open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil },
	}
}

func diskFile(name, path string, d registry.Digest, size int64) registry.PartFile {
	return registry.PartFile{
		File: registry.File{Path: name, Digest: d, Size: size},
		Open: func() (io.ReadCloser, error) { return os.Open(path) },
	}
}

// settledFile is a file that a finished step wrote. It does not change any more.
func settledFile(name, path string, d registry.Digest, size int64) registry.PartFile {
	return registry.PartFile{
		File: registry.File{Path: name, Digest: d, Size: size},
		Open: func() (io.ReadCloser, error) {
			f, err := os.Open(path)
			if err != nil {
				return nil, err
			}
			return registry.Settled{File: f}, nil
		},
	}
}

// referenceFiles are those of the reference. Where an engine has the same bytes, such as
// weights that nothing changed, they are the engine's, which need no copy.
func (b build) referenceFiles() []registry.PartFile {
	files := inputFiles(b.inputs.Model)
	for i, f := range files {
		for _, e := range b.engines {
			for _, made := range e.files {
				if made.Digest == f.Digest {
					files[i] = settledFile(f.Path, made.Path, f.Digest, f.Size)
				}
			}
		}
	}
	return files
}

// inputFile is the file of an input, opened again through [toolchain.Input.Open].
func inputFile(in toolchain.Input) registry.PartFile {
	return registry.PartFile{
		File: registry.File{Path: in.Name, Digest: in.Digest, Size: in.Size},
		Open: func() (io.ReadCloser, error) { return in.Open() },
	}
}

func inputFiles(inputs []toolchain.Input) []registry.PartFile {
	files := make([]registry.PartFile, len(inputs))
	for i, in := range inputs {
		files[i] = inputFile(in)
	}
	return files
}

func outputFiles(outputs []toolchain.OutputFile) []registry.PartFile {
	files := make([]registry.PartFile, len(outputs))
	for i, out := range outputs {
		files[i] = settledFile(out.Name, out.Path, out.Digest, out.Size)
	}
	return files
}

func shardFiles(set registry.CaseSet, outputs []toolchain.OutputFile) []registry.PartFile {
	files := make([]registry.PartFile, len(outputs))
	for i, out := range outputs {
		files[i] = settledFile(set.Shards[i].File, out.Path, out.Digest, out.Size)
	}
	return files
}
