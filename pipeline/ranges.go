package pipeline

import (
	"path/filepath"
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/pipeline/plan"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
)

// The table of ranges that calibration takes is all that static quantization takes from
// it, and its last bits depend on the processor. So the table joins the sources, as a
// tuning record, and a later build of the same model and calibration quantizes from the
// table: on every machine it makes the same bytes.

// rangesFile is the table as the quantizer calls it.
const rangesFile = "calibration.json"

// knownRanges are tables that earlier builds left, by the name that they have in sources.
type knownRanges struct {
	from   string // version of the release whose sources they are
	tables map[string]toolchain.Input
}

// take keeps the table, if f of the sources is one.
func (k *knownRanges) take(f registry.File, dir string) bool {
	if !strings.HasPrefix(f.Path, onnxRuntime+"/ranges-") {
		return false
	}
	k.tables[f.Path] = toolchain.Input{Role: toolchain.RoleRanges, Name: rangesFile,
		Path: filepath.Join(dir, filepath.FromSlash(f.Path)), Digest: f.Digest, Size: f.Size}
	return true
}

// quantizerInputs are those of the quantizer for an engine: the table of ranges in place
// of calibration, where there is one.
func (m maker) quantizerInputs(e plan.Engine, model []toolchain.Input) ([]toolchain.Input, error) {
	name, err := m.plan.RangesName(e, model)
	if table, ok := m.learned.ranges.tables[name]; ok && err == nil {
		return append(slices.Clone(model), table), nil
	}
	in := m.inputs.Inputs
	in.Model = model
	return in.ForQuantizer(e.Quantize), err
}

// rangesFiles are the tables of ranges that the engines were quantized by, each once.
func (b build) rangesFiles() ([]registry.PartFile, error) {
	var files []registry.PartFile
	for _, e := range b.engines {
		name, err := b.plan.RangesName(e.planned, e.base)
		if err != nil {
			return nil, err
		}
		have := slices.ContainsFunc(files, func(f registry.PartFile) bool { return f.Path == name })
		if name == "" || have {
			continue
		}
		i := slices.IndexFunc(e.steps, func(s takenStep) bool { return s.job.Verb == toolchain.VerbQuantize })
		table, ok := e.steps[i].outcome.File(rangesFile)
		if !ok {
			return nil, registry.Errorf(registry.CodeInternal, "%s left no %s", e.steps[i].name, rangesFile)
		}
		files = append(files, diskFile(name, table.Path, table.Digest, table.Size))
	}
	return files, nil
}

// rangesOf is the table of ranges that a job reads; empty for none.
func rangesOf(job toolchain.Job) registry.Digest {
	for _, in := range job.Inputs {
		if in.Role == toolchain.RoleRanges {
			return in.Digest
		}
	}
	return ""
}
