package build

import (
	"slices"

	"mlpromote.dev/mlpromote/pipeline/plan"
	"mlpromote.dev/mlpromote/pipeline/run"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/storage"
)

// quantizerInputs are those of the quantizer for an engine: the table of ranges in place
// of calibration, where there is one.
func quantizerInputs(m Maker, e plan.Engine, model []toolchain.Input) ([]toolchain.Input, error) {
	name, err := m.Plan.RangesName(e, model)
	if table, ok := m.learned.ranges.tables[name]; ok && err == nil {
		return append(slices.Clone(model), table), nil
	}
	in := m.Inputs.Inputs
	in.Model = model
	return in.ForQuantizer(e.Quantize), err
}

// rangesFiles are the tables of ranges that the engines were quantized by, each once.
func rangesFiles(b making) ([]storage.PartFile, error) {
	var files []storage.PartFile
	for _, e := range b.engines {
		name, err := b.Plan.RangesName(e.planned, e.base)
		if err != nil {
			return nil, err
		}
		have := slices.ContainsFunc(files, func(f storage.PartFile) bool { return f.Path == name })
		if name == "" || have {
			continue
		}
		i := slices.IndexFunc(e.steps, func(s run.Step) bool { return s.Job.Verb == toolchain.VerbQuantize })
		table, ok := e.steps[i].Outcome.File(rangesFile)
		if !ok {
			return nil, registry.Errorf(registry.CodeInternal, "%s left no %s", e.steps[i].Name, rangesFile)
		}
		files = append(files, run.DiskFile(name, table.Path, table.Digest, table.Size))
	}
	return files, nil
}
