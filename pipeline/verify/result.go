package verify

import (
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
)

// Sensitivity is what int8 costs an engine that does not keep its limits, and what to do
// about it.
type Sensitivity struct {
	Variant string                 `json:"variant"`
	SNRdB   evidence.Figure        `json:"snrDb"` // of the outputs with everything quantized; it and those of Nodes are what ONNX Runtime computes
	Nodes   []GraphNodeSensitivity `json:"nodes"` // costliest first
	Of      int                    `json:"of"`    // nodes that could be quantized; at most as many were tried
	// Unfinished is true where the time ran out: nodes are missing, or Exclude is, or it is
	// longer than it has to be.
	Unfinished bool `json:"unfinished,omitempty"`
	// Exclude are the nodes that have to stay in full precision so that the engine keeps its
	// limits of parity, those that the spec excludes already among them: it was built so
	// and compared on all cases. It is empty if no part of the tried nodes suffices.
	Exclude []string `json:"exclude,omitempty"`
	// Unsuited is true where all layers with weights, or more than two thirds of the nodes, would have to stay in full
	// precision: then little of the model is int8, and Exclude is empty.
	Unsuited bool `json:"unsuited,omitempty"`
	// Unlike describes how the calibration data is unlike the cases; empty if it is not.
	Unlike string `json:"unlike,omitempty"`
	// Quantize is the spec's quantize of the variant with Exclude in it, as YAML.
	Quantize string `json:"quantize,omitempty"`
}

// GraphNodeSensitivity is a node, and the signal to noise ratio of the outputs when it alone is
// quantized.
type GraphNodeSensitivity struct {
	Node     string          `json:"node"`
	Operator string          `json:"operator"`
	SNRdB    evidence.Figure `json:"snrDb"`
}

// SlowEngine is an engine that takes at least farSlower times as long on a machine as the fastest
// engine in fp32, or as the reference model if no engine is in fp32.
type SlowEngine struct {
	Label string  `json:"label"`
	Than  string  `json:"than"`  // label of the engine in fp32; "reference" for the reference model
	Times float64 `json:"times"` // by the medians of single runs
	P50Ns int64   `json:"p50Ns"` // median of the slow engine
	// ThanP50Ns is the median of the other.
	ThanP50Ns int64 `json:"thanP50Ns"`
}

// Result has the reports about a release on this machine.
type Result struct {
	Ref     registry.Ref     `json:"-"`
	Release artifact.Release `json:"release"`
	Node    artifact.Node    `json:"node"`
	Engines []VerifiedEngine `json:"engines"`
	Skipped []SkippedEngine  `json:"skipped,omitempty"` // engines for other machines
	// Slow are engines that take far longer here than one in fp32.
	Slow []SlowEngine `json:"slow,omitempty"`
}

// VerifiedEngine is an engine that ran here.
type VerifiedEngine struct {
	Label       string                     `json:"label"`
	Digest      registry.Digest            `json:"digest"`
	Parity      evidence.ParityReport      `json:"parity"`
	Performance evidence.PerformanceReport `json:"performance"`
	// Sensitivity is set for an int8 engine that failed, if the analysis finished.
	Sensitivity *Sensitivity `json:"sensitivity,omitempty"`

	figures []byte                 // the file of per-case figures that the parity report names; nil for none
	loads   []evidence.LoadFigures // of several clients of a server
	late    bool                   // a consistency check did not begin or did not end for want of time
}

// SkippedEngine is an engine that did not run here, and why.
type SkippedEngine struct {
	Label      string              `json:"label"`
	Mismatches []artifact.Mismatch `json:"mismatches"`
	Reason     string              `json:"reason,omitempty"` // why its toolchain cannot be had here, if so
}

// String returns the reason: the first thing that the machine lacks, and why it lacks it.
func (s SkippedEngine) String() string {
	text := s.Label + ": " + s.Mismatches[0].String()
	if s.Reason != "" {
		text += " (" + s.Reason + ")"
	}
	return text
}

// Passes reports whether an engine computes what the reference computes, and is as fast as its limits
// ask; without a limit on its times, they are only recorded.
func (e VerifiedEngine) Passes() bool {
	fast := e.Performance.Verdict == evidence.VerdictPass || e.Performance.Verdict == evidence.VerdictRecorded
	return fast && e.Parity.Verdict == evidence.VerdictPass
}
