package ingest

import (
	"os"

	"mlpromote.dev/mlpromote/pipeline/plan"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/validators"
	"mlpromote.dev/mlpromote/validators/format"
)

// Inputs is the content that a spec names, read and checked, with the model as it was imported.
type Inputs struct {
	plan.Inputs
	Imported Model
	Program  *toolchain.Input         // that computes the metric; nil for a metric without one
	Notes    []string                 // what a person should know of the model, such as names in it that are left out
	Students map[string]*plan.Student // by variant
	// calibrationLabels is the tensor of the calibration data that is compared with the outputs where costs of compression are
	// measured; empty for none.
	CalibrationLabels string
	Accepted          string // why the spec accepts golden outputs that the evaluator does not confirm
	// batch is set if leading dimensions without a name are taken for one batch, which a run of the model has to show.
	batch *unnamedBatch
}

// unnamedBatch is a batch of an ONNX file that its graph does not name.
type unnamedBatch struct {
	apart   validators.Interface // as the graph has it
	unnamed []string             // the symbols of leading dimensions there
}

// refuseCode refuses a file that runs code when it is loaded, or that hides what is in it.
func refuseCode(f *os.File) error { return format.Gate{}.CheckFile(f) }
