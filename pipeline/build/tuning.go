package build

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/pipeline/plan"
	"mlpromote.dev/mlpromote/pipeline/run"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/policy"
	"mlpromote.dev/mlpromote/registry/storage"
)

// recall fetches the tuning records and tables of ranges of the release at the head of the
// first environment, if a trusted builder signed it. They are not part of the plan: a release is not
// made again for what was learned while it was made.
func recall(ctx context.Context, env *run.Env, prepared Prepared, scratch string) (learned, error) {
	model := prepared.Plan.Model
	environments, err := env.Registry.Environments(ctx)
	if err != nil {
		return learned{}, err
	}
	first := environments.First().Name
	r, err := env.Registry.Release(ctx, first, model, "")
	if registry.HasCode(err, registry.CodeNotFound) {
		return learned{}, nil
	}
	if err != nil {
		return learned{}, err
	}
	claims, _, err := env.Registry.Claims(ctx, first, r)
	if err != nil || !(policy.Policy{Require: []string{policy.RequireSignature}}).Check(r, claims).Allowed() {
		return learned{}, err
	}
	repository := registry.SourcesRepository(first, model)
	sources, err := env.Parts.Sources(ctx, repository, r.Sources)
	if registry.HasCode(err, registry.CodeNotFound) {
		return learned{}, nil // who may build need not be able to read them all
	}
	if err != nil {
		return learned{}, err
	}
	ref, ok := sources.Parts[artifact.PartTuning]
	if !ok {
		return learned{}, nil
	}
	dir, err := os.MkdirTemp(scratch, "tuning-*")
	if err != nil {
		return learned{}, err
	}
	part, err := env.Parts.Fetch(ctx, repository, ref.Digest, dir)
	if err != nil {
		return learned{}, err
	}
	known := learned{ranges: knownRanges{from: r.Version, tables: make(map[string]toolchain.Input)}}
	for _, f := range part.Files {
		if known.ranges.take(f, dir) {
			continue
		}
		if r, ok := readTuning(f, dir); ok && prepared.Tools[r.toolchain.Name].Profile.Tuning == "" {
			known.records = append(known.records, r)
		}
	}
	return known, nil
}

// readTuning reads what a record is for off its name.
func readTuning(f artifact.File, dir string) (tuningRecord, bool) {
	parts := strings.SplitN(f.Path, "/", 4)
	if len(parts) != 4 {
		return tuningRecord{}, false
	}
	return tuningRecord{
		toolchain: artifact.Toolchain{Name: parts[0], Version: parts[1]}, target: parts[2],
		file: toolchain.OutputFile{Name: parts[3],
			Path: filepath.Join(dir, filepath.FromSlash(f.Path)), Digest: f.Digest, Size: f.Size},
	}, true
}

// tuning are the records that the compiler of an engine goes by: what the spec names, or
// what warm-starts it.
func tuning(m Maker, planned plan.Engine) []toolchain.Input {
	if planned.Tuning != nil {
		return []toolchain.Input{planned.Tuning.Input}
	}
	var inputs []toolchain.Input
	for _, r := range m.learned.records {
		if r.toolchain.Name == planned.Toolchain.Name &&
			r.toolchain.Version == planned.Toolchain.Version && r.target == planned.Target.Name {
			inputs = append(inputs, toolchain.Input{Role: toolchain.RoleTuning,
				Name: r.file.Name, Path: r.file.Path, Digest: r.file.Digest, Size: r.file.Size})
		}
	}
	return inputs
}

// takeRecords takes the record that the spec gave, if any, and from what a compiler left
// the records that are not files of the engine.
func (e *BuiltEngine) takeRecords(given *plan.Tuning, files []toolchain.OutputFile) {
	if given != nil {
		in := given.Input
		e.records = append(e.records, tuningRecord{given: &in, toolchain: e.Engine.Toolchain, target: e.Engine.Target.Name,
			file: toolchain.OutputFile{Name: in.Name, Path: in.Path, Digest: in.Digest, Size: in.Size}})
	}
	for _, f := range files {
		name, ok := strings.CutPrefix(f.Name, toolchain.TuningFolder+"/")
		if !ok {
			e.Files = append(e.Files, f)
			continue
		}
		f.Name = name
		e.records = append(e.records,
			tuningRecord{toolchain: e.Engine.Toolchain, target: e.Engine.Target.Name, file: f, settled: true})
	}
}

// tuningPart is what this build learned, as a part of the sources.
func tuningPart(b making) (storage.Part, error) {
	files, err := rangesFiles(b)
	files = append(files, recordFiles(b)...)
	slices.SortFunc(files, func(a, b storage.PartFile) int { return strings.Compare(a.Path, b.Path) })
	return storage.Part{Role: artifact.PartTuning, Files: files}, err
}

// recordFiles are the records of this build, and those of the last one for what this one
// did not compile. Of several engines for one target, the record of the last counts.
func recordFiles(b making) []storage.PartFile {
	last := make(map[string]tuningRecord)
	for _, r := range b.learned.records {
		last[r.name()] = r
	}
	for _, e := range b.engines {
		for _, r := range e.records {
			last[r.name()] = r
		}
	}
	var files []storage.PartFile
	for name, r := range last {
		switch {
		case r.given != nil:
			in := *r.given
			in.Name = name
			files = append(files, run.InputFile(in))
		case r.settled:
			files = append(files, run.SettledFile(name, r.file.Path, r.file.Digest, r.file.Size))
		default:
			files = append(files, run.DiskFile(name, r.file.Path, r.file.Digest, r.file.Size))
		}
	}
	return files
}
