package pipeline

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"

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

// rangesName is what the table of ranges of a quantization is called among tuning records:
// after everything that decides it but the processor. Empty where there is none.
func (p Plan) rangesName(e PlannedEngine, model []toolchain.Input) (string, error) {
	if e.Quantizer == nil || e.Quantizer.Name != hub || e.Quantize["method"] != methodStatic || p.Calibration == nil {
		return "", nil
	}
	options := maps.Clone(e.Quantize)
	for _, weights := range []string{"method", "reduce_range", "per_channel"} { // say nothing of activations
		delete(options, weights)
	}
	key, err := registry.CanonicalDigest(struct {
		Model       []PlannedFile      `json:"model"`
		Calibration []PlannedFile      `json:"calibration"`
		Options     map[string]any     `json:"options"`
		Tool        registry.Toolchain `json:"tool"`
	}{plannedFiles(model), p.Calibration.Files, options, registry.Toolchain{Name: e.Quantizer.Name,
		Version: e.Quantizer.Version}})
	if err != nil {
		return "", err
	}
	return hub + "/ranges-" + key.Encoded()[:12] + ".json", nil
}

// take keeps the table, if f of the sources is one.
func (k *knownRanges) take(f registry.File, dir string) bool {
	if !strings.HasPrefix(f.Path, hub+"/ranges-") {
		return false
	}
	k.tables[f.Path] = toolchain.Input{Role: toolchain.RoleRanges, Name: rangesFile,
		Path: filepath.Join(dir, filepath.FromSlash(f.Path)), Digest: f.Digest, Size: f.Size}
	return true
}

// quantizerInputs are those of the quantizer for an engine: the table of ranges in place
// of calibration, where there is one.
func (b *build) quantizerInputs(e PlannedEngine) ([]toolchain.Input, error) {
	name, err := b.plan.rangesName(e, b.inputs.Model)
	if table, ok := b.ranges.tables[name]; ok && err == nil {
		return append(slices.Clone(b.inputs.Model), table), nil
	}
	return b.inputs.forQuantizer(e.Quantize), err
}

// rangesFiles are the tables of ranges that the engines were quantized by, each once.
func (b *build) rangesFiles() ([]registry.PartFile, error) {
	var files []registry.PartFile
	for i, e := range b.engines {
		name, err := b.plan.rangesName(b.plan.Engines[i], b.inputs.Model)
		if err != nil {
			return nil, err
		}
		have := slices.ContainsFunc(files, func(f registry.PartFile) bool { return f.Path == name })
		if name == "" || have {
			continue
		}
		table, ok := e.steps[0].outcome.File(rangesFile)
		if !ok {
			return nil, registry.Errorf(registry.CodeInternal, "%s left no %s", e.steps[0].name, rangesFile)
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
