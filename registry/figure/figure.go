// Package figure is the table of the figures by which engines are judged: the name of each in
// documents, messages and pages, how a limit bounds it, and the default limits. Package tensor
// measures the figures of outputs, package accuracy the figures of labelled cases.
package figure

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Unit is the unit of a figure's values.
type Unit int

// The units.
const (
	Number   Unit = iota // often a multiple of the spread of the reference's values
	Fine                 // a number near 1, written with more digits
	Share                // of the cases
	Decibels             // a ratio of squares
)

// Subject is the object of a measurement.
type Subject int

// The subjects.
const (
	Output  Subject = iota // an output, compared with the reference's; limits on outputs bound it by Key
	Rule                   // an output; a rule judges it by a limit that no document changes
	Answers                // the labelled cases; the limits on accuracy bound it
)

// Scope is the outputs that have a default limit on a figure. A ceiling holds for them alone.
type Scope int

// The scopes.
const (
	None      Scope = iota // no output has one; a ceiling holds for all outputs of numbers
	Numbers                // outputs of numbers
	Channels               // outputs of numbers with an axis that can be channels: all but masks without classes
	Ranks                  // outputs of numbers; the largest value in a row, or at a place of a mask, is the answer
	FewValues              // outputs of numbers, not of Ranks, with under 4 values in a case
	Values                 // outputs of quantities
	Detected               // outputs of detections, which have no other default limit
	Classes                // outputs of answers: classes, labels, booleans
)

// Line is a part of a report that people read as one thing. A report has one line for each, with its worst check.
type Line string

// The lines, in the order of a report.
const (
	EveryCase   Line = "every case"  // errors of single cases, and values that are not finite
	Tendency    Line = "bias"        // errors that follow from the values: an offset or a factor
	SameAnswers Line = "answers"     // shares of equal answers, and classes
	Labels      Line = "your labels" // accuracy on the labels
	Again       Line = "same again"  // other runs of the same cases
	Runs        Line = "runs"        // whether the engine runs, by whom, and whether the evidence agrees with itself
)

// Lines lists the lines in the order of a report.
func Lines() []Line { return []Line{EveryCase, Tendency, SameAnswers, Labels, Again, Runs} }

// Row is one figure.
type Row struct {
	Name   string // in stored documents and reports
	Key    string // in mlpromote.yaml and environments.yaml
	Word   string // in tables and on pages
	Phrase string // in messages; empty: the name
	// Counts describes, for a share, the cases that are not missed.
	Counts  string
	Doc     string // description in the schema of mlpromote.yaml
	Subject Subject
	Line    Line
	Unit    Unit
	// Low and High are the range of limits.
	Low, High float64
	AtLeast   bool // a limit is the least that is allowed, else the most
	// Rate is a share of the cases: a limit holds by its bounds.
	Rate bool
	// Overall is a figure over all cases together: a limit that holds proves nothing about a single one.
	Overall bool
	// Whole is a figure that some of the cases cannot decide.
	Whole bool
	// OfSpread is relative to the spread of all values. Where quarters are judged alone, its limit is BesideQuarters times as loose; 0 is none.
	OfSpread       bool
	BesideQuarters float64
	// Sometimes is a figure that depends on the reference's values: without it an output has no check of a limit.
	Sometimes bool
	// Refuted is a rate that only fails: if its bounds exclude the limit.
	Refuted bool
	// ZeroIsNone is set if a limit of 0 asks for nothing.
	ZeroIsNone bool
	Scope      Scope
	// Defaults are the default limits by precision; a precision without one has no default.
	Defaults map[string]float64
	// Values replace Defaults for values and probabilities: the default of others is more than a probability can be off.
	Values map[string]float64
	// Usual is, for a share, the part of the cases in which engines without a fault differ, by
	// precision. UsualPart is the same as a part of the limit.
	Usual     map[string]float64
	UsualPart float64
	// Channels multiplies the default limit of outputs if channels have spreads of their own, by
	// precision: the channels of an output that is quantized share one grid. Without one it is 1.
	Channels map[string]float64
	// State is added to the default limit of an output that the next run takes as an input, since its errors add up.
	State float64
	// Few is a figure. Its default limit replaces the one of this figure for an output of few
	// values: there the error of a case is the error of an element.
	Few string
}

// All lists the figures in the order of a report.
func All() []Row { return slices.Clone(table) }

// OfOutputs lists the figures that limits on outputs can bound.
func OfOutputs() []Row {
	return slices.DeleteFunc(All(), func(r Row) bool { return r.Subject != Output })
}

// Find returns the figure with a name; false if there is none.
func Find(name string) (Row, bool) {
	at := slices.IndexFunc(table, func(r Row) bool { return r.Name == name })
	if at < 0 {
		return Row{}, false
	}
	return table[at], true
}

// ByKey returns the figure of outputs with a key in YAML; false if there is none.
func ByKey(key string) (Row, bool) {
	at := slices.IndexFunc(table, func(r Row) bool { return r.Subject == Output && r.Key == key })
	if at < 0 {
		return Row{}, false
	}
	return table[at], true
}

// Names lists the names of the figures that limits on outputs can bound, sorted.
func Names() (names []string) {
	for _, r := range OfOutputs() {
		names = append(names, r.Name)
	}
	slices.Sort(names)
	return names
}

// Keys lists the keys of the figures that limits on outputs can bound.
func Keys() (keys []string) {
	for _, f := range OfOutputs() {
		keys = append(keys, f.Key)
	}
	return keys
}

// Keeps reports whether a value is within a limit; NaN never is.
func (r Row) Keeps(value, limit float64) bool {
	if r.AtLeast {
		return value >= limit
	}
	return value <= limit
}

// Looser returns the limit that allows more.
func (r Row) Looser(a, b float64) float64 {
	if r.AtLeast {
		return min(a, b)
	}
	return max(a, b)
}

// Half returns a limit that allows half as much: half of an error, half of the way to 1, or 6 dB more.
func (r Row) Half(limit float64) float64 {
	switch {
	case r.Unit == Decibels:
		return limit + 6
	case r.AtLeast:
		return (1 + limit) / 2
	}
	return limit / 2
}

// Text writes a value with its unit.
func (r Row) Text(v float64) string {
	switch r.Unit {
	case Share:
		return fmt.Sprintf("%.4g %%", 100*v)
	case Decibels:
		return fmt.Sprintf("%.4g dB", v)
	case Fine:
		return Digits(v, 6)
	default:
		return Digits(v, 3)
	}
}

// Digits writes a number with so many digits that count, and large ones without an exponent: 1174000, not 1.174e+06.
func Digits(v float64, digits int) string {
	text := strconv.FormatFloat(v, 'g', digits, 64)
	const largest = 1e12
	if strings.Contains(text, "e+") && math.Abs(v) < largest {
		if rounded, err := strconv.ParseFloat(text, 64); err == nil {
			return strconv.FormatFloat(rounded, 'f', -1, 64)
		}
	}
	return text
}
