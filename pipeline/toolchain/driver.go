package toolchain

import (
	"context"
	"encoding/json"
	"time"

	"mlpromote.dev/mlpromote/registry"
)

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

// Driver does jobs. It is safe for concurrent use.
type Driver interface {
	// Identity returns the identity of the installed software, from the record of the install.
	// It starts no process. Errors: CodeUnavailable if the tool is not installed, with how to
	// install it.
	Identity(ctx context.Context) (Identity, error)
	// Do does the job and leaves only its files in outDir, which must be an empty directory or
	// not exist. It only reads inputs. If ctx ends, the work stops and the error is that of
	// ctx. After an error the content of outDir is undefined. Errors: CodeUnavailable for a
	// tool that is missing or exceeded its budget; CodeInvalid for a job or input that the tool
	// cannot take; CodeUnsafe for input that would run code; CodeWrongNode for an engine that
	// does not fit this machine; CodeInternal for a tool that failed.
	Do(ctx context.Context, job Job, outDir string) (Outcome, error)
}

// Identity is the exact software that does a job.
type Identity struct {
	Name          string            `json:"name"`              // "onnxruntime"
	Version       string            `json:"version"`           // exact: "1.30.0"
	Lock          registry.Digest   `json:"lock,omitempty"`    // of the lock file of the install; if Adopted, of the installed packages
	Adopted       bool              `json:"adopted,omitempty"` // not installed from our lock file: the user's own Python, or a compiler with a manifest
	Image         registry.Digest   `json:"image,omitempty"`   // of the container image that it runs in, if any; then Lock is the same
	Code          registry.Digest   `json:"code"`              // of the driver's own code and fixed settings
	Library       string            `json:"-"`                 // path of the shared library that is loaded, if any
	LibraryDigest registry.Digest   `json:"library,omitempty"` // of its bytes
	Versions      map[string]string `json:"versions"`          // every package of the install
}

// Outcome is the result of a job.
type Outcome struct {
	Files   []OutputFile    // sorted by name
	Result  json.RawMessage // what the driver reports, per verb: [ProbeResult], [RunResult], ...
	Cached  bool            // the result is from the cache; nothing ran
	Origin  Origin          // of a cached result: where the work was done
	Elapsed time.Duration   // wall time of the work, when it was done
	Key     registry.Digest // of everything that can change the result; set by Cache
	// Enforced has the restrictions under which the driver did the work.
	Enforced Enforced

	about About // of a cached result
}

// Origin says where a cached step was done. The zero Origin is this machine.
type Origin struct {
	Cache  string `json:"cache,omitempty"`  // "oci://host/repository"
	Signer string `json:"signer,omitempty"` // the builder's key that signed it there
}

// OutputFile is a file that a job left. Digest and Size were computed by mlpromote from the
// bytes, not by the driver.
type OutputFile struct {
	Name   string // relative to the output directory, with '/'
	Path   string // where it is
	Digest registry.Digest
	Size   int64 // bytes
}

// File returns the file of the outcome with a name.
func (o Outcome) File(name string) (OutputFile, bool) {
	for _, f := range o.Files {
		if f.Name == name {
			return f, true
		}
	}
	return OutputFile{}, false
}
