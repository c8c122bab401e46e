package toolchain

import (
	"context"
	"encoding/json"
	"time"

	"mlpromote.dev/mlpromote/registry"
)

// Verb says what a job is to do.
type Verb string

// The verbs of the driver protocol. A driver answers those that it has and gives
// CodeInvalid for the others.
const (
	VerbProbe    Verb = "probe"    // say what the tool is, and what a model asks for
	VerbImport   Verb = "import"   // another format to ONNX
	VerbQuantize Verb = "quantize" // ONNX and calibration to ONNX in lower precision
	VerbCompile  Verb = "compile"  // ONNX to what a runtime loads
	VerbRun      Verb = "run"      // engines and cases to outputs and timings
)

// Driver does jobs. It is safe for concurrent use.
type Driver interface {
	// Identity says what would do the job, from the record of the install: it starts
	// no process. Errors: CodeUnavailable where the tool is not installed, saying how
	// to install it.
	Identity(ctx context.Context) (Identity, error)
	// Do does the job and leaves its files, and nothing else, in outDir, which is
	// an empty directory or not there yet. Inputs are only read. When ctx ends, the
	// work is stopped and the error is that of ctx. After an error the content of
	// outDir is undefined. Errors: CodeUnavailable for a tool that is not there or ran
	// out of its budget; CodeInvalid for a job or input that the tool cannot take;
	// CodeUnsafe for input that would run code; CodeWrongNode for an engine that is
	// not for this machine; CodeInternal for a tool that failed.
	Do(ctx context.Context, job Job, outDir string) (Outcome, error)
}

// Identity is the exact software that does a job.
type Identity struct {
	Name          string            `json:"name"`              // "onnxruntime"
	Version       string            `json:"version"`           // exact: "1.30.0"
	Lock          registry.Digest   `json:"lock,omitempty"`    // of the lock file of the install; of what is installed, where it is Adopted
	Adopted       bool              `json:"adopted,omitempty"` // not installed from our lock file: the user's own Python, or a compiler with a manifest
	Image         registry.Digest   `json:"image,omitempty"`   // of the container image that it runs in, if any; then Lock is the same
	Code          registry.Digest   `json:"code"`              // of the driver's own code and fixed settings
	Library       string            `json:"-"`                 // path of the shared library that is loaded, if any
	LibraryDigest registry.Digest   `json:"library,omitempty"` // of its bytes
	Versions      map[string]string `json:"versions"`          // every package of the install
}

// Outcome is what a job left.
type Outcome struct {
	Files   []OutputFile    // sorted by name
	Result  json.RawMessage // what the driver reports, per verb: [ProbeResult], [RunResult], ...
	Cached  bool            // nothing ran: the files are remembered
	Origin  Origin          // of what is remembered: who did the work
	Elapsed time.Duration   // wall time of the work, when it was done
	Key     registry.Digest // of everything that could change the result; set by Cache
	// Enforced is what held the driver while the work was done.
	Enforced Enforced

	about About // of what is remembered
}

// Origin says where a remembered step was done. The zero Origin is this machine.
type Origin struct {
	Cache  string `json:"cache,omitempty"`  // "oci://host/repository"
	Signer string `json:"signer,omitempty"` // the builder's key that signed it there
}

// OutputFile is a file that a job left. Digest and Size were computed on this side,
// from the bytes.
type OutputFile struct {
	Name   string // relative to the output directory, with '/'
	Path   string // where it is
	Digest registry.Digest
	Size   int64 // bytes
}

// File finds a file of the outcome by name.
func (o Outcome) File(name string) (OutputFile, bool) {
	for _, f := range o.Files {
		if f.Name == name {
			return f, true
		}
	}
	return OutputFile{}, false
}
