package toolchain

import (
	"time"

	"mlpromote.dev/mlpromote/registry"
)

// Job is one step of a build or verification.
type Job struct {
	Verb    Verb
	Inputs  []Input
	Options map[string]any // depend on verb and driver; JSON values
	// Machine names the class of CPU for steps that compute floats, and so is part of their
	// key: artifact.Node.Kind and the features that change arithmetic. Empty for steps whose
	// result is the same on every machine.
	Machine string
	Run     *RunOptions // for VerbRun, else nil
	// Accelerators are the vendors of accelerators that engines of the run are for, or that the compiler needs: "nvidia".
	// The driver may then use their devices. Machine has which devices these are.
	Accelerators []string
	Budget       Budget // no part of any key
}

// TuningFolder is a folder in the outputs of VerbCompile. Its files are not part of the engine:
// they are the tuning record, which a later job gets with RoleTuning.
const TuningFolder = "tuning"

// Validate checks that the job is complete and that its names stay inside their groups. Errors:
// CodeInvalid.
func (j Job) Validate() error {
	switch j.Verb {
	case VerbProbe, VerbImport, VerbQuantize, VerbCompress, VerbCompile, VerbRun:
	default:
		return registry.Errorf(registry.CodeInvalid, "job: unknown verb %q", j.Verb)
	}
	seen := make(map[[2]string]bool, len(j.Inputs))
	for _, in := range j.Inputs {
		if err := in.validate(); err != nil {
			return registry.Errorf(registry.CodeInvalid, "%s: %w", j.Verb, err)
		}
		id := [2]string{in.Role, in.Name}
		if seen[id] {
			return registry.Errorf(registry.CodeInvalid, "%s: two inputs are called %s/%s", j.Verb, in.Role, in.Name)
		}
		seen[id] = true
	}
	if (j.Verb == VerbRun) != (j.Run != nil) {
		return registry.Errorf(registry.CodeInvalid, "%s: run options belong to the verb run, and to no other", j.Verb)
	}
	if j.Run != nil {
		return j.Run.validate(seen)
	}
	return nil
}

// Verb is the operation of a job.
type Verb string

// The verbs of the driver protocol. A driver returns CodeInvalid for verbs that it does not
// support.
const (
	VerbProbe    Verb = "probe"    // report the tool's version, and the inputs and outputs of models
	VerbImport   Verb = "import"   // another format to ONNX
	VerbQuantize Verb = "quantize" // ONNX and calibration to ONNX in lower precision
	VerbCompress Verb = "compress" // ONNX to ONNX of another, smaller function
	VerbCompile  Verb = "compile"  // ONNX, or a source that the compiler takes, to what a runtime loads
	VerbRun      Verb = "run"      // engines and cases to outputs and timings
)

// Budget is the most that a step may use, and so what is reserved for it. Zero fields set no
// limit. It is not part of a key, because a step that ends within its budget gives the same
// result.
type Budget struct {
	Time        time.Duration // from start to end
	Cores       int
	MemoryBytes int64 // private writable memory of a process
	GPUs        int
}
