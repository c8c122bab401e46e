package registry

// LatencyBounds are one-sided bounds of quantiles of latency at a confidence, by order statistics:
// samples, in nanoseconds. An upper bound of 0 means that the samples are too few for one.
type LatencyBounds struct {
	Confidence Figure `json:"confidence"`
	P50LowNs   int64  `json:"p50LowNs"`
	P50HighNs  int64  `json:"p50HighNs"`
	P99LowNs   int64  `json:"p99LowNs"`
	P99HighNs  int64  `json:"p99HighNs"`
	// Over is how many samples are above the limit on the 99th percentile; absent without one.
	Over *int `json:"over,omitempty"`
}

// Fitness is what a machine did while latency was measured.
type Fitness struct {
	// Steal is the share of the time that processors wanted to work in which the machine below ran
	// other virtual machines; absent where the system does not count it.
	Steal *Figure `json:"steal,omitempty"`
	// MHzBefore and MHzAfter are the mean frequency of the processors; 0 where it is not known.
	MHzBefore int `json:"mhzBefore,omitempty"`
	MHzAfter  int `json:"mhzAfter,omitempty"`
	// Emulated says why the times are not those of the target; empty if they are. No limit on them
	// is decided then.
	Emulated string `json:"emulated,omitempty"`
}

// LatencyRatio compares the median latency of an engine with that of the engine that it would
// replace. Each ran in Blocks processes, in an order that is a palindrome, so that a drift of the machine
// meets both alike.
type LatencyRatio struct {
	Environment string    `json:"environment"`
	Release     DigestSet `json:"release"`
	Engine      DigestSet `json:"engine"`
	Blocks      int       `json:"blocks"`
	CurrentNs   int64     `json:"currentP50Ns"` // of the engine that would be replaced
	Ratio       Figure    `json:"ratio"`        // of medians; 1.1 is 10 % slower
	// Low and High are one-sided bounds of the ratio at Confidence, by a hierarchical bootstrap
	// over blocks and samples with Seed. SameLow and SameHigh are those of the engine against
	// itself: what the machine alone changes.
	Low        Figure `json:"low"`
	High       Figure `json:"high"`
	SameLow    Figure `json:"sameLow"`
	SameHigh   Figure `json:"sameHigh"`
	Confidence Figure `json:"confidence"`
	Seed       int    `json:"seed"`
}
