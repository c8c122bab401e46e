package build

import (
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
)

// stepStudent is the step of a variant with a model of its own.
const stepStudent = "student"

// Result is what Build made, or found made already.
type Result struct {
	Ref       registry.Ref     `json:"-"`
	Release   artifact.Release `json:"release"`
	Plan      registry.Digest  `json:"plan"`
	Unchanged bool             `json:"unchanged"` // the environment had the release of this plan; nothing was made
	Steps     int              `json:"steps"`     // steps of drivers
	Cached    int              `json:"cached"`    // of them, taken from the cache
	Attached  int              `json:"attached"`
	// Failed are engines of the plan that the release does not have.
	Failed []FailedEngine `json:"failed,omitempty"`
	// Reproducible is the class of each engine, by label, where it was asked for.
	Reproducible map[string]evidence.Reproducibility `json:"reproducible,omitempty"`
	// Compression is what was made of the model of each compressed engine, by label, and what it costs.
	Compression map[string]*Compression `json:"compression,omitempty"`
	// CrossCheck says who checked the golden outputs, when they were made.
	CrossCheck *evidence.CrossCheck `json:"crossCheck,omitempty"`
	// ReferenceLatency is of the reference's own run, when it was made.
	ReferenceLatency evidence.Latency `json:"referenceLatency"`
	Elapsed          time.Duration    `json:"elapsedNs"`
}

// Options say how a build is done. The zero Options build all that is missing.
type Options struct {
	// CheckReproducible does every step twice, in two processes, and says in the provenance
	// how it came out; the drivers must remember nothing. It makes a release that is there.
	CheckReproducible bool
	// KeepGoing makes the release of the engines that could be made. What could not is in
	// Result.Failed, and is the error beside the result. Without it nothing is stored.
	KeepGoing bool
	// Targets are the names of the targets whose engines are made; empty: all. Then what was made is
	// stored as a part of a release, which [Assemble] puts together.
	Targets []string
}

// Compression is what was made of the model of an engine before it was compiled, and what each step costs. Costs are measured on
// the calibration data, which no verdict sees.
type Compression struct {
	// Calibration is how many cases the costs are measured on; 0: the spec has no calibration, and only sizes are known.
	Calibration int `json:"calibration"`
	// Labels is the tensor of the calibration data that accuracy is measured by; empty for none.
	Labels string            `json:"labels,omitempty"`
	Steps  []CompressionStep `json:"steps"`
}

// CompressionStep is a step, what it changed, and how far the outputs are from those of the reference model after it.
type CompressionStep struct {
	Step    string         `json:"step"` // "student", "prune 2:4", "low-rank", "quantize"
	Options map[string]any `json:"options,omitempty"`
	// Bytes are those of the model's files. Before is of the reference model for a student, else of what the step was given.
	Bytes BeforeAfter `json:"bytes"`
	// Parameters are the numbers of the model in floating point, and Zeros those of them that are zero. Nil where a step does not
	// count them.
	Parameters *BeforeAfter `json:"parameters,omitempty"`
	Zeros      *BeforeAfter `json:"zeros,omitempty"`
	// Kept are layers that the step left as they are, and why.
	Kept []KeptLayer `json:"kept,omitempty"`
	// Outputs are the outputs compared with those of the reference model, by name.
	Outputs  map[string]evidence.OutputFigures `json:"outputs,omitempty"`
	Accuracy *evidence.Accuracy                `json:"accuracy,omitempty"`
}

// BeforeAfter is a count before a step and after it.
type BeforeAfter struct {
	Before int64 `json:"before"`
	After  int64 `json:"after"`
}

// KeptLayer is a node that could not be compressed.
type KeptLayer struct {
	Node     string `json:"node"`
	Operator string `json:"operator"`
	Why      string `json:"why"`
}

// FailedEngine is an engine of a spec that could not be made, or does not load, and why.
type FailedEngine struct {
	Label  string        `json:"label"`
	Code   registry.Code `json:"code"`
	Reason string        `json:"reason"`
}
