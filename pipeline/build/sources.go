package build

import (
	"context"

	"mlpromote.dev/mlpromote/pipeline/run"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/storage"
)

// checkSources compares the given sources with what the spec names here, and returns their digest and those of their parts.
func checkSources(ctx context.Context, b making, repository string, given storage.Sources) (sources registry.Digest,
	roles map[artifact.PartKind]registry.Digest, err error) {
	roles = make(map[artifact.PartKind]registry.Digest)
	for role, ref := range given.Parts {
		roles[role] = ref.Digest
	}
	for _, part := range writtenSources(b) {
		ref, err := b.env.Parts.PutPart(ctx, repository, part)
		if err != nil {
			return "", nil, err
		}
		if roles[part.Role] != ref.Digest {
			return "", nil, registry.WithHint(
				registry.Errorf(registry.CodeInvalid, "the %s here is %s, and that of the first part of this release is %s (sources %s)",
					part.Role, ref.Digest, roles[part.Role], given.Digest),
				"a model that is imported must come out the same on every machine: share a build cache, or build on machines of one kind")
		}
	}
	return given.Digest, roles, nil
}

// pushSources stores what engines are made of and compared with. It returns the digests of the
// sources index and of the parts in it.
func pushSources(ctx context.Context, b making, repository string) (sources registry.Digest, roles map[artifact.PartKind]registry.Digest, err error) {
	golden := b.golden.Set
	parts := append(writtenSources(b), storage.Part{Role: artifact.PartGolden, Files: run.ShardFiles(b.golden.Set, b.golden.Files), Set: &golden})
	tuning, err := tuningPart(b)
	if err != nil {
		return "", nil, err
	}
	if len(tuning.Files) > 0 {
		parts = append(parts, tuning)
	}
	var refs []storage.PartRef
	roles = make(map[artifact.PartKind]registry.Digest)
	for _, part := range parts {
		ref, err := b.env.Parts.PutPart(ctx, repository, part)
		if err != nil {
			return "", nil, err
		}
		roles[part.Role] = ref.Digest
		refs = append(refs, ref)
	}
	sources, err = b.env.Parts.Assemble(ctx, repository,
		storage.Assembly{Model: b.Plan.Model, Parts: refs, Tags: []string{b.Plan.Version}})
	return sources, roles, err
}

// writtenSources are the sources that the spec names, which no step of a build made.
func writtenSources(b making) []storage.Part {
	cases := b.Inputs.Cases.Record
	parts := []storage.Part{
		{Role: artifact.PartReference, Files: append(referenceFiles(b), b.Inputs.OperatorFiles()...), Model: b.Plan.Model, Format: run.OnnxFormat,
			Engine: artifact.Engine{Variant: run.ReferenceID, Precision: b.Plan.ReferencePrecision}},
		{Role: artifact.PartCases, Files: run.InputFiles(b.Inputs.Cases.Files), Set: &cases},
	}
	if len(b.Inputs.Calibration.Files) > 0 {
		calibration := b.Inputs.Calibration.Record
		parts = append(parts,
			storage.Part{Role: artifact.PartCalibration, Files: run.InputFiles(b.Inputs.Calibration.Files), Set: &calibration})
	}
	if program := b.Inputs.Program; program != nil {
		parts = append(parts, storage.Part{Role: artifact.PartProgram, Files: run.InputFiles([]toolchain.Input{*program})})
	}
	return parts
}

// referenceFiles are those of the reference. Where an engine has the same bytes, such as
// weights that nothing changed, they are the engine's, which need no copy.
func referenceFiles(b making) []storage.PartFile {
	files := run.InputFiles(b.Inputs.Model)
	for i, f := range files {
		for _, e := range b.engines {
			for _, made := range e.Files {
				if made.Digest == f.Digest {
					files[i] = run.SettledFile(f.Path, made.Path, f.Digest, f.Size)
				}
			}
		}
	}
	return files
}
