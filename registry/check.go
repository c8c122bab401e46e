package registry

// Check is one limit in a report, with what was measured: the verdict of a report follows from theirs.
type Check struct {
	Output string `json:"output,omitempty"` // empty: of the engine as a whole
	Figure string `json:"figure"`           // "maxError", "top1", "accuracy", "drop", ...
	Slice  string `json:"slice,omitempty"`  // value of the slice of the cases that it is about; empty: all
	Value  Figure `json:"value"`
	// Limit is the least that is allowed if AtLeast, else the most.
	Limit   Figure  `json:"limit"`
	AtLeast bool    `json:"atLeast,omitempty"`
	Verdict Verdict `json:"verdict"`
	// Low and High are the one-sided bounds of a rate at the confidence of the report. The limit
	// holds if the bound that is further off does.
	Low  *Figure `json:"low,omitempty"`
	High *Figure `json:"high,omitempty"`
	// Misses is what the bounds of a rate are computed from, with Cases: how many cases differ
	// from the reference or are wrong; shares of a case add up. For a drop they are the answers
	// that only the reference has right.
	Misses *Figure `json:"misses,omitempty"`
	// Won is, for a drop, the answers that only the engine has right.
	Won   *Figure `json:"won,omitempty"`
	Cases int     `json:"cases"`
	// Proves is, for a limit that held on every case, the largest share of inputs that can exceed
	// it all the same, at the confidence of the report.
	Proves *Figure `json:"proves,omitempty"`
	Case   *int    `json:"case,omitempty"` // the worst one, if there is one
	// Identical is, of a limit on differences or on a drop that the bounds do not prove, how many cases there are if no float output
	// differs in a bit in any of them: then it passes. Rarest is how many of them have the rarest class, where the metric has classes.
	Identical int `json:"identical,omitempty"`
	Rarest    int `json:"rarest,omitempty"`
	// Resampled says that the bounds follow from figures of each case, and not from what the report has.
	Resampled bool `json:"resampled,omitempty"`
}
