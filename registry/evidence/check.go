package evidence

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Figure is a measured number. JSON cannot express infinities and NaN, so those are the strings
// "inf", "-inf" and "nan".
type Figure float64

// MarshalJSON writes a number or one of the three strings.
func (f Figure) MarshalJSON() ([]byte, error) {
	switch v := float64(f); {
	case math.IsNaN(v):
		return []byte(`"nan"`), nil
	case math.IsInf(v, 1):
		return []byte(`"inf"`), nil
	case math.IsInf(v, -1):
		return []byte(`"-inf"`), nil
	default:
		return json.Marshal(v)
	}
}

// UnmarshalJSON reads what MarshalJSON writes.
func (f *Figure) UnmarshalJSON(data []byte) error {
	switch string(data) {
	case `"nan"`:
		*f = Figure(math.NaN())
	case `"inf"`:
		*f = Figure(math.Inf(1))
	case `"-inf"`:
		*f = Figure(math.Inf(-1))
	default:
		v, err := strconv.ParseFloat(string(data), 64)
		if err != nil {
			return fmt.Errorf("figure %s: want a number, \"inf\", \"-inf\" or \"nan\"", data)
		}
		*f = Figure(v)
	}
	return nil
}

// Trial is a run of an engine by which it is judged. Package validators lists them, with what each compares.
type Trial string

// The trials.
const (
	TrialCases     Trial = "cases"      // the run of all cases, which the limits are about
	TrialGolden    Trial = "golden"     // the reference model on some of the cases
	TrialRepeat    Trial = "repeat"     // the same cases twice in one process
	TrialProcess   Trial = "process"    // the same cases in another process, in another order
	TrialLoad      Trial = "load"       // the same cases by the engine loaded several times, one after the other in one process
	TrialBatch     Trial = "batch"      // cases stacked, compared with what each gives alone
	TrialDimension Trial = "dimension"  // other sizes of open dimensions
	TrialBeyond    Trial = "beyond"     // cases with inputs twice as large, for values that are not finite
	TrialClients   Trial = "clients"    // all cases, sent to a model server by several clients at the same time
	TrialPlainLoad Trial = "plain_load" // some of the cases, loaded without the load profile, in a process of its own
)

// Trials lists the trials.
func Trials() []Trial {
	return []Trial{TrialCases, TrialGolden, TrialRepeat, TrialProcess, TrialLoad, TrialBatch, TrialDimension, TrialBeyond, TrialClients, TrialPlainLoad}
}

// Baseline is what the outputs of a trial are compared with.
type Baseline string

// The baselines.
const (
	BaselineGolden    Baseline = "golden"    // the golden outputs of the release
	BaselineReference Baseline = "reference" // what the reference model computes on this machine
	BaselineItself    Baseline = "itself"    // what the engine computed for the same cases
	BaselineLabels    Baseline = "labels"    // the labels of the cases
	BaselineCurrent   Baseline = "current"   // the engine that the destination has now
)

// Baselines lists the baselines.
func Baselines() []Baseline {
	return []Baseline{BaselineGolden, BaselineReference, BaselineItself, BaselineLabels, BaselineCurrent}
}

// Check is one comparison in a report: which trial ran, what its outputs were compared with, by which figure, and what was
// measured. The verdict of a report follows from the verdicts of its checks.
type Check struct {
	Trial Trial `json:"trial"`
	// Size is the size that a trial ran at, if it has several: "batch=2", "seq=64", "loads=16".
	Size     string   `json:"size,omitempty"`
	Baseline Baseline `json:"baseline"`
	Output   string   `json:"output,omitempty"` // empty: the engine as a whole
	Figure   string   `json:"figure"`           // "maxError", "top1", "accuracy", "drop", ...
	Slice    string   `json:"slice,omitempty"`  // value of the slice of the cases that it is about; empty: all
	Value    Figure   `json:"value"`
	// Limit is the least that is allowed if AtLeast, else the most. A trial beyond the cases has none: the limits of all figures
	// judge it together, and Value is the largest difference.
	Limit   *Figure `json:"limit,omitempty"`
	AtLeast bool    `json:"atLeast,omitempty"`
	// Verdict is undecided for a trial that did not run, and recorded for a difference between runs that is within the limits, for
	// a failure that the engine may have, and for a trial that the model cannot have.
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
	Cases int     `json:"cases"` // that were compared; 0 for a trial that did not run
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
	// Affected is, for repeat, process and load, how many of the cases differ in any bit: for load, in the load that differs most.
	// For golden it is how many differ beyond what another processor explains, without those of Converted.
	Affected int `json:"affected,omitempty"`
	// Converted is, for golden, how many of the cases have values that are rounded for engines and not for the framework that made the golden
	// outputs. The limits on engines judge what that changes.
	Converted int `json:"converted,omitempty"`
	// Drawn are the numbers of the cases on which a plain load failed, ascending. Later verifications of the engine run them again.
	Drawn   []int  `json:"drawn,omitempty"`
	Message string `json:"message,omitempty"` // of a trial beyond the cases: what it found, or why it did not run
}

// NotForModel reports whether a model cannot have the trial, as batches where it has no dimension for them. The message says why.
func (c Check) NotForModel() bool {
	return c.Trial != TrialCases && c.Verdict == VerdictRecorded && c.Cases == 0
}

// LimitValue is the limit; NaN, which no value keeps, for a check without one.
func (c Check) LimitValue() Figure {
	if c.Limit == nil {
		return Figure(math.NaN())
	}
	return *c.Limit
}

// Name is the trial and its size: "batch batch=2".
func (c Check) Name() string {
	return strings.TrimSpace(strings.ReplaceAll(string(c.Trial), "_", " ") + " " + c.Size)
}

// Checks are the checks of a report: those of the cases first.
type Checks []Check

// OfCases returns the checks of the run of all cases: one for each limit.
func (c Checks) OfCases() Checks {
	return c.filter(func(c Check) bool { return c.Trial == TrialCases })
}

// Beyond returns the checks of trials beyond the run of all cases. A trial that this version does not know is among them.
func (c Checks) Beyond() Checks { return c.filter(func(c Check) bool { return c.Trial != TrialCases }) }

// Of returns the first check of a trial.
func (c Checks) Of(trial Trial) (Check, bool) {
	at := slices.IndexFunc(c, func(c Check) bool { return c.Trial == trial })
	if at < 0 {
		return Check{}, false
	}
	return c[at], true
}

func (c Checks) filter(keep func(Check) bool) Checks {
	return slices.DeleteFunc(slices.Clone(c), func(c Check) bool { return !keep(c) })
}
