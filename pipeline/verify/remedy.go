package verify

import (
	"errors"
	"slices"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/figure"
	"mlpromote.dev/mlpromote/validators"
)

// Remedy is the failure of an engine with its likely cause and what to do next. As an error it is the failure.
type Remedy struct {
	Label string
	Cause string
	Next  string // EngineMark in it stands for the label of the engine
	err   error
}

// EngineMark stands for the flag that names an engine in the next step of a remedy, and RefMark for its ref.
const (
	EngineMark = "{engine}"
	RefMark    = "{ref}"
)

func (r *Remedy) Error() string { return r.err.Error() }

// Unwrap returns the failure.
func (r *Remedy) Unwrap() error { return r.err }

// Remedies returns the remedies that a failure has, the latest first.
func Remedies(failure error) (all []*Remedy) {
	var r *Remedy
	for errors.As(failure, &r) {
		all = append(all, r)
		failure = r.err
	}
	return all
}

// cause is a row: reasons, and what they mostly come from.
type cause struct {
	codes      []string
	precisions []string // empty: all
	lines      []figure.Line
	figures    []string
	cause      string
	next       string
}

// The steps that several causes have in common.
const (
	nextBisect = "mlpromote bisect " + RefMark + EngineMark + " finds the first layer that differs"
	nextBuild  = "then mlpromote build and verify"
	nextShow   = "mlpromote report show " + RefMark + EngineMark + " has all figures"
)

// beyondLimits are the codes of reasons that a figure is beyond its limit.
var beyondLimits = []string{validators.ReasonLimit, validators.ReasonAccuracy}

// causes are the rows in their order: the first that fits a reason decides.
var causes = []cause{
	{codes: beyondLimits, figures: []string{figure.Groups},
		cause: "the engine hardly looks at its input, as where it was calibrated on inputs that are prepared in another way",
		next:  "prepare the calibration data as the cases are, " + nextBuild},
	{codes: beyondLimits, lines: []figure.Line{figure.Tendency},
		cause: "calibration data and cases are prepared in different ways, or the engine scales an output",
		next:  "prepare both in one way, " + nextBuild + "; " + nextBisect},
	{codes: beyondLimits, precisions: []string{validators.PrecisionInt8, "int4", validators.PrecisionFP8},
		cause: "the numbers are too coarse for some layers, or for inputs that the calibration data lacks",
		next:  "calibrate with more inputs that are like the cases, or take fp16, " + nextBuild + "; " + nextBisect},
	{codes: beyondLimits, precisions: []string{validators.PrecisionFP16, validators.PrecisionBF16},
		cause: "some values are too large or too close for 16 bits",
		next:  "take fp32 for this target, " + nextBuild + "; " + nextBisect},
	{codes: beyondLimits,
		cause: "a fault of the engine or its runtime: in fp32 only the rounding differs",
		next:  nextBisect},
	{codes: []string{validators.ReasonNotEnough},
		cause: "the cases prove too little: the engine may be good",
		next:  "record as many cases as the line above names (docs/how-to/cases.md), " + nextBuild + "; if it names none, ask for less in limits"},
	{codes: []string{validators.ReasonTooFewCases},
		cause: "few cases have values that count",
		next:  "record more cases (docs/how-to/cases.md), " + nextBuild},
	{codes: []string{validators.ReasonNewNaN, validators.ReasonNewInf},
		cause: "numbers that are too large for 16 bits, or for a scale of int8",
		next:  "leave the layer out of the variant, or take fp32, " + nextBuild + "; " + nextBisect},
	{codes: []string{validators.ReasonShape},
		cause: "the compiler changed or dropped an axis",
		next:  "fix open dimensions in shapes, or take another toolchain, " + nextBuild},
	{codes: []string{validators.ReasonJitter},
		cause: "threads add in another order each time, or the answers depend on memory that nobody set",
		next:  "set one thread under load in the target, " + nextBuild + "; limits.consistency.jitter allows small differences"},
	{codes: []string{validators.ReasonContradicted},
		cause: "the engine does not compute the same each time: more runs do not help",
		next:  "set one thread under load in the target, or take another runtime, " + nextBuild},
	{codes: []string{validators.ReasonBatch, validators.ReasonDimension},
		cause: "an answer depends on the other cases of its batch, or on the size of an input",
		next:  "set one size in shapes, " + nextBuild},
	{codes: []string{validators.ReasonBeyond},
		cause: "numbers overflow beyond the range of the cases",
		next:  "take fp32, or leave the layer out of the variant, " + nextBuild},
	{codes: []string{validators.ReasonGolden},
		cause: "the release has outputs of the reference model that this machine does not compute: another model, or another machine made them",
		next:  "mlpromote build from the source again, and look who built it with mlpromote trust " + RefMark},
	{codes: []string{validators.ReasonPlainLoad},
		cause: "the engine works only with its load profile",
		next:  "write required: true under load in the target if all nodes use the profile, " + nextBuild},
	{codes: []string{validators.ReasonLatency, validators.ReasonRegression},
		cause: "the engine is too slow on this machine, or the machine does other work",
		next:  "mlpromote profile " + RefMark + EngineMark + " shows where the time goes; mlpromote tune compares variants"},
	{codes: []string{validators.ReasonUnfit},
		cause: "other work on this machine spoils the times: nothing is known about the engine",
		next:  "mlpromote verify on a machine with less to do"},
	{codes: []string{validators.ReasonEmulated},
		cause: "an emulated processor computes and takes time as no real one does",
		next:  "mlpromote verify on real hardware"},
	{codes: []string{validators.ReasonProvider},
		cause: "the engine ran on another device than its target names",
		next:  "correct the driver of this machine, or providers in the target"},
	{codes: []string{reasonRuntime},
		cause: "the target lets in runtimes that cannot load the engine",
		next:  "mlpromote build again, or narrow the target"},
	{codes: []string{reasonRun},
		cause: "a crash or an error of the runtime, which the line above repeats",
		next:  "mlpromote verify again; if it stays, take another version of the toolchain"},
	{codes: []string{validators.ReasonNotRun},
		cause: "a part of the verification did not run, so nothing failed and nothing is proven",
		next:  nextShow},
}

// causeOf returns the likely cause of a reason of an engine, and what to do next.
func causeOf(r evidence.Reason, precision string) (likely, next string) {
	numbers, _ := artifact.NumberFormat(precision)
	for _, row := range causes {
		if slices.Contains(row.codes, r.Code) && (row.precisions == nil || slices.Contains(row.precisions, numbers)) &&
			(row.lines == nil || slices.Contains(row.lines, validators.LineOf(r))) && (row.figures == nil || slices.Contains(row.figures, r.Figure)) {
			return row.cause, row.next
		}
	}
	return "not known", nextShow
}

// Leading returns the reason that people see first of an engine that is no pass, and the number of all reasons: the one about labels,
// which are the task of the model, or else the first.
func (e VerifiedEngine) Leading() (leading evidence.Reason, count int) {
	for _, head := range []evidence.ReportHead{e.Parity.ReportHead, e.Performance.ReportHead} {
		if head.Verdict == evidence.VerdictPass || head.Verdict == evidence.VerdictRecorded {
			continue
		}
		for _, r := range head.Reasons {
			if count == 0 || validators.LineOf(r) == figure.Labels && validators.LineOf(leading) != figure.Labels {
				leading = r
			}
			count++
		}
	}
	return leading, count
}

// WithRemedy adds a cause and what to do to the failure of an engine, and to its hints.
func WithRemedy(failure error, label, likely, next string) error {
	return &Remedy{label, likely, next, registry.WithHint(failure, "%s: %s", likely, next)}
}

// remedies adds the usual cause to the failures of engines that have no better one. converted reports whether the reference model itself
// computes something else for inputs as the engines take them.
func remedies(v Session, engines []VerifiedEngine, failures []error, converted bool) {
	for i, e := range engines {
		reason, count := e.Leading()
		if failures[i] == nil || count == 0 || len(Remedies(failures[i])) > 0 {
			continue
		}
		likely, next := causeOf(reason, v.candidates[i].Engine.Precision)
		if converted && slices.Contains(beyondLimits, reason.Code) {
			likely, next = "the engine takes the inputs with fewer digits than the cases have, as the warning describes",
				"train the model on inputs of that type, or allow the difference in limits, "+nextBuild
		}
		failures[i] = &Remedy{e.Label, likely, next, failures[i]}
	}
}
