package registry

// ConsistencyKind says what a consistency check runs.
type ConsistencyKind string

// The kinds of consistency checks.
const (
	ConsistencyGolden    ConsistencyKind = "golden"    // the reference model on some of the cases, compared with the golden outputs
	ConsistencyRepeat    ConsistencyKind = "repeat"    // the same cases twice in one process
	ConsistencyProcess   ConsistencyKind = "process"   // the same cases in another process, in another order
	ConsistencyLoad      ConsistencyKind = "load"      // the same cases by the engine loaded several times, one after the other in one process
	ConsistencyBatch     ConsistencyKind = "batch"     // cases stacked, compared with what each gives alone
	ConsistencyDimension ConsistencyKind = "dimension" // other sizes of open dimensions, compared with the reference model
)

// ConsistencyCheck is what an engine did beyond one run of the cases.
type ConsistencyCheck struct {
	Kind ConsistencyKind `json:"kind"`
	// What names the sizes of batches and dimensions, "batch=2", "seq=64", and how often an engine was loaded, "loads=16".
	What  string `json:"what,omitempty"`
	Cases int    `json:"cases"` // that were compared; 0 if the check was left out or could not run
	// Affected is, for repeat, process and load, how many of the cases differ in any bit: for load, in the load that differs most.
	// For golden it is how many differ beyond what another processor explains, without those of Converted.
	Affected int `json:"affected,omitempty"`
	// Converted is, for golden, how many of the cases have values that are rounded for engines and not for the framework that made the golden
	// outputs. The limits on engines judge what that changes.
	Converted int `json:"converted,omitempty"`
	// Verdict is undecided for a check that was left out, and recorded for a difference between runs
	// that is within the limits, or for a kind of checks that does not apply to the model.
	Verdict Verdict `json:"verdict"`
	MaxAbs  Figure  `json:"maxAbs"`           // largest difference, of all outputs
	Output  string  `json:"output,omitempty"` // that has it
	Message string  `json:"message,omitempty"`
}

// NotForModel reports whether there is no such check for the model, as of batches where it has no dimension for them. The message says why.
func (c ConsistencyCheck) NotForModel() bool { return c.Verdict == VerdictRecorded && c.Cases == 0 }
