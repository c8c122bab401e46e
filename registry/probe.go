package registry

// ProbeKind says what a probe runs.
type ProbeKind string

// The kinds of probes.
const (
	ProbeRepeat    ProbeKind = "repeat"    // the same cases twice in one process
	ProbeProcess   ProbeKind = "process"   // the same cases in another process, in another order
	ProbeBatch     ProbeKind = "batch"     // cases stacked, compared with what each gives alone
	ProbeDimension ProbeKind = "dimension" // other sizes of open dimensions, compared with the reference model
)

// Probe is what an engine did beyond one run of the cases.
type Probe struct {
	Kind ProbeKind `json:"kind"`
	// What names the sizes of batches and dimensions: "batch=2", "seq=64".
	What  string `json:"what,omitempty"`
	Cases int    `json:"cases"` // that were compared; 0 if the probe was left out or could not run
	// Affected is, for repeat and process, how many of the cases differ in any bit.
	Affected int `json:"affected,omitempty"`
	// Verdict is undecided for a probe that was left out, and recorded for a difference between runs
	// that is within the limits.
	Verdict Verdict `json:"verdict"`
	MaxAbs  Figure  `json:"maxAbs"`           // largest difference, of all outputs
	Output  string  `json:"output,omitempty"` // that has it
	Message string  `json:"message,omitempty"`
}
