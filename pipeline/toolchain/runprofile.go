package toolchain

// RunProfile is where the time of an engine goes, as its runtime says it: of runs of the first case that
// are not timed otherwise, the first of them left out.
type RunProfile struct {
	Runs int `json:"runs"` // that times are the mean of
	// Load are parts of loading the engine, as the runtime divides it; empty if it does not.
	Load []ProfileTime `json:"load,omitempty"`
	// RunNS is what a run takes in the runtime, nanoseconds; 0 if it does not say it. What is left beside the
	// operators is spent between them.
	RunNS     int64          `json:"run_ns,omitempty"`
	Operators []OperatorTime `json:"operators"` // in the order in which they run first
}

// ProfileTime is a part of something that takes time.
type ProfileTime struct {
	Name   string `json:"name"`
	TimeNS int64  `json:"time_ns"`
}

// OperatorTime is the mean time of a node of an engine's graph in a run.
type OperatorTime struct {
	Node     string `json:"node"`
	Operator string `json:"operator"`
	Provider string `json:"provider,omitempty"` // execution provider, or the kind of kernel
	TimeNS   int64  `json:"time_ns"`
}
