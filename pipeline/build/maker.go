package build

import (
	"path"
	"path/filepath"
	"strings"
	"sync"

	"mlpromote.dev/mlpromote/pipeline/goldenset"
	"mlpromote.dev/mlpromote/pipeline/plan"
	"mlpromote.dev/mlpromote/pipeline/run"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/validators/format/tie"
)

// Baseline is the outputs of the reference model on the calibration data, which engines that are compressed share.
type Baseline struct {
	sync.Mutex
	dir string // that has them; empty while they are not known
}

// BuiltEngine is an engine whose files are made.
type BuiltEngine struct {
	Tool        run.Tool
	Engine      artifact.Engine
	Files       []toolchain.OutputFile
	records     []tuningRecord
	made        run.Recipe
	tie         tie.Tie // what the engine says of itself
	census      *evidence.Census
	steps       []run.Step
	base        []toolchain.Input // the model that was quantized or, where nothing was, compiled
	compression *Compression      // nil: it was made from the reference model as it is
	loaded      bool              // it ran on a case here
	planned     plan.Engine
	failed      error // why it could not be made, or does not load
}

// label is what messages call the engine.
func (e BuiltEngine) label() string { return e.planned.Target.Name + "/" + e.planned.Variant }

// Maker makes what a plan asks for, on this machine.
type Maker struct {
	run.Worker
	Prepared
	Node     artifact.Node
	learned  learned
	known    *goldenset.Set // golden outputs that another machine made; nil: the reference is run
	Baseline *Baseline
	// crossCheckBelow is the size in bytes from which models are not evaluated.
	crossCheckBelow int64
}

// made is what a maker made.
type made struct {
	imported run.Step // of a source that had to be imported
	golden   goldenset.Set
	engines  []BuiltEngine
	left     []FailedEngine // engines that the release is made without
}

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
func (k *knownRanges) take(f artifact.File, dir string) bool {
	if !strings.HasPrefix(f.Path, run.OnnxRuntime+"/ranges-") {
		return false
	}
	k.tables[f.Path] = toolchain.Input{Role: toolchain.RoleRanges, Name: rangesFile,
		Path: filepath.Join(dir, filepath.FromSlash(f.Path)), Digest: f.Digest, Size: f.Size}
	return true
}

// tuningRecord is what a toolchain learned for a target, in a file of its own
// format, such as the timing cache of a compiler.
type tuningRecord struct {
	toolchain artifact.Toolchain
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
