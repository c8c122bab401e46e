package pipeline

import (
	"context"
	"maps"
	"os"
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
	}{plannedFiles(model), p.Calibration.Files, options, registry.Toolchain{Name: e.Quantizer.Name, Version: e.Quantizer.Version}})
	if err != nil {
		return "", err
	}
	return hub + "/ranges-" + key.Encoded()[:12] + ".json", nil
}

// findRanges reads the tables in the sources of the first environment's head, where a
// trusted builder signed it. Without any, calibration is taken.
func (b *build) findRanges(ctx context.Context) error {
	needed, err := b.needsRanges()
	if err != nil || !needed {
		return err
	}
	environments, err := b.p.Registry.Environments(ctx)
	if err != nil {
		return err
	}
	first := environments.First().Name
	r, err := b.p.Registry.Release(ctx, first, b.plan.Model, "")
	if registry.HasCode(err, registry.CodeNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	claims, _, err := b.p.Registry.Claims(ctx, first, r)
	if err != nil || !(registry.Policy{Require: []string{registry.RequireSignature}}).Check(r, claims).Allowed() {
		return err
	}
	return b.fetchRanges(ctx, registry.SourcesRepository(first, r.Model), r)
}

func (b *build) needsRanges() (bool, error) {
	for _, e := range b.plan.Engines {
		if name, err := b.plan.rangesName(e, b.inputs.Model); err != nil || name != "" {
			return true, err
		}
	}
	return false, nil
}

func (b *build) fetchRanges(ctx context.Context, repository string, r registry.Release) error {
	sources, err := b.p.Parts.Sources(ctx, repository, r.Sources)
	if err != nil {
		return err
	}
	ref, ok := sources.Parts[registry.PartTuning]
	if !ok {
		return nil
	}
	dir := filepath.Join(b.scratch, "tuning")
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	part, err := b.p.Parts.Fetch(ctx, repository, ref.Digest, dir)
	if err != nil {
		return err
	}
	b.ranges = knownRanges{from: r.Version, tables: make(map[string]toolchain.Input)}
	for _, f := range part.Files {
		if strings.HasPrefix(f.Path, hub+"/ranges-") {
			b.ranges.tables[f.Path] = toolchain.Input{Role: toolchain.RoleRanges, Name: rangesFile,
				Path: filepath.Join(dir, filepath.FromSlash(f.Path)), Digest: f.Digest, Size: f.Size}
		}
	}
	return nil
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

// tuning are the tables of ranges that the engines were quantized by, each once.
func (b *build) tuning() (registry.Part, error) {
	part := registry.Part{Role: registry.PartTuning}
	for i, e := range b.engines {
		name, err := b.plan.rangesName(b.plan.Engines[i], b.inputs.Model)
		if err != nil {
			return registry.Part{}, err
		}
		have := slices.ContainsFunc(part.Files, func(f registry.PartFile) bool { return f.Path == name })
		if name == "" || have {
			continue
		}
		table, ok := e.steps[0].outcome.File(rangesFile)
		if !ok {
			return registry.Part{}, registry.Errorf(registry.CodeInternal, "%s left no %s", e.steps[0].name, rangesFile)
		}
		part.Files = append(part.Files, diskFile(name, table.Path, table.Digest, table.Size))
	}
	slices.SortFunc(part.Files, func(a, b registry.PartFile) int { return strings.Compare(a.Path, b.Path) })
	return part, nil
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
