package toolchain

import (
	"context"

	"mlpromote.dev/mlpromote/registry"
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
