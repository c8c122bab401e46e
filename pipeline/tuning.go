package pipeline

import (
	"context"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/pipeline/plan"
	"mlpromote.dev/mlpromote/pipeline/spec"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
)

// tuningRecord is what a toolchain learned for a target, in a file of its own
// format, such as the timing cache of a compiler.
type tuningRecord struct {
	toolchain registry.Toolchain
	target    string
	file      toolchain.OutputFile // Name is the toolchain's
	given     *toolchain.Input     // the spec names it
	settled   bool                 // this build left it
}

// name is what the record is called among the sources: a record is good for one version
// of one toolchain and one target.
func (r tuningRecord) name() string {
	return path.Join(r.toolchain.Name, r.toolchain.Version, r.target, r.file.Name)
}

// learned is what earlier builds left for later ones.
type learned struct {
	ranges  knownRanges
	records []tuningRecord
}

// recall fetches the tuning records and tables of ranges of the release at the head of the
// first environment, if a trusted builder signed it. They are not part of the plan: a release is not
// made again for what was learned while it was made.
func (p *Pipeline) recall(ctx context.Context, prepared prepared, scratch string) (learned, error) {
	model := prepared.plan.Model
	environments, err := p.Registry.Environments(ctx)
	if err != nil {
		return learned{}, err
	}
	first := environments.First().Name
	r, err := p.Registry.Release(ctx, first, model, "")
	if registry.HasCode(err, registry.CodeNotFound) {
		return learned{}, nil
	}
	if err != nil {
		return learned{}, err
	}
	claims, _, err := p.Registry.Claims(ctx, first, r)
	if err != nil || !(registry.Policy{Require: []string{registry.RequireSignature}}).Check(r, claims).Allowed() {
		return learned{}, err
	}
	repository := registry.SourcesRepository(first, model)
	sources, err := p.Parts.Sources(ctx, repository, r.Sources)
	if registry.HasCode(err, registry.CodeNotFound) {
		return learned{}, nil // who may build need not be able to read them all
	}
	if err != nil {
		return learned{}, err
	}
	ref, ok := sources.Parts[registry.PartTuning]
	if !ok {
		return learned{}, nil
	}
	dir, err := os.MkdirTemp(scratch, "tuning-*")
	if err != nil {
		return learned{}, err
	}
	part, err := p.Parts.Fetch(ctx, repository, ref.Digest, dir)
	if err != nil {
		return learned{}, err
	}
	known := learned{ranges: knownRanges{from: r.Version, tables: make(map[string]toolchain.Input)}}
	for _, f := range part.Files {
		if known.ranges.take(f, dir) {
			continue
		}
		if r, ok := readTuning(f, dir); ok && prepared.tools[r.toolchain.Name].Profile.Tuning == "" {
			known.records = append(known.records, r)
		}
	}
	return known, nil
}

// readTuning reads what a record is for off its name.
func readTuning(f registry.File, dir string) (tuningRecord, bool) {
	parts := strings.SplitN(f.Path, "/", 4)
	if len(parts) != 4 {
		return tuningRecord{}, false
	}
	return tuningRecord{
		toolchain: registry.Toolchain{Name: parts[0], Version: parts[1]}, target: parts[2],
		file: toolchain.OutputFile{Name: parts[3],
			Path: filepath.Join(dir, filepath.FromSlash(f.Path)), Digest: f.Digest, Size: f.Size},
	}, true
}

// tuning are the records that the compiler of an engine goes by: what the spec names, or
// what warm-starts it.
func (m maker) tuning(planned plan.Engine) []toolchain.Input {
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

// maxTuning is how many bytes a tuning record that a spec names may have. It is written by
// people, or by a tuner for a few operators.
const maxTuning = 4 << 20

// tuningInput reads the record that a target of a spec names; nil for none.
func tuningInput(files specFiles, t spec.Target) (*toolchain.Input, error) {
	written := t.Toolchain.Tuning.Written
	if written == "" {
		return nil, nil
	}
	in, err := files.input(written, toolchain.RoleTuning, path.Base(written), func(f *os.File) error {
		info, err := f.Stat()
		if err != nil {
			return err
		}
		if info.Size() > maxTuning {
			return registry.Errorf(registry.CodeInvalid, "%s has %d bytes: want at most %d", written, info.Size(), maxTuning)
		}
		return refuseCode(f)
	})
	return &in, inside("target "+t.Name+": tuning", err)
}

// takeRecords takes the record that the spec gave, if any, and from what a compiler left
// the records that are not files of the engine.
func (e *builtEngine) takeRecords(given *plan.Tuning, files []toolchain.OutputFile) {
	if given != nil {
		in := given.Input
		e.records = append(e.records, tuningRecord{given: &in, toolchain: e.engine.Toolchain, target: e.engine.Target.Name,
			file: toolchain.OutputFile{Name: in.Name, Path: in.Path, Digest: in.Digest, Size: in.Size}})
	}
	for _, f := range files {
		name, ok := strings.CutPrefix(f.Name, toolchain.TuningFolder+"/")
		if !ok {
			e.files = append(e.files, f)
			continue
		}
		f.Name = name
		e.records = append(e.records,
			tuningRecord{toolchain: e.engine.Toolchain, target: e.engine.Target.Name, file: f, settled: true})
	}
}

// tuningPart is what this build learned, as a part of the sources.
func (b build) tuningPart() (registry.Part, error) {
	files, err := b.rangesFiles()
	files = append(files, b.recordFiles()...)
	slices.SortFunc(files, func(a, b registry.PartFile) int { return strings.Compare(a.Path, b.Path) })
	return registry.Part{Role: registry.PartTuning, Files: files}, err
}

// recordFiles are the records of this build, and those of the last one for what this one
// did not compile. Of several engines for one target, the record of the last counts.
func (b build) recordFiles() []registry.PartFile {
	last := make(map[string]tuningRecord)
	for _, r := range b.learned.records {
		last[r.name()] = r
	}
	for _, e := range b.engines {
		for _, r := range e.records {
			last[r.name()] = r
		}
	}
	var files []registry.PartFile
	for name, r := range last {
		switch {
		case r.given != nil:
			in := *r.given
			in.Name = name
			files = append(files, inputFile(in))
		case r.settled:
			files = append(files, settledFile(name, r.file.Path, r.file.Digest, r.file.Size))
		default:
			files = append(files, diskFile(name, r.file.Path, r.file.Digest, r.file.Size))
		}
	}
	return files
}
