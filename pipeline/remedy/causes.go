package remedy

import (
	"slices"

	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/figure"
	"mlpromote.dev/mlpromote/validators"
)

// cause is a row: reasons, and what they mostly come from.
type cause struct {
	codes      []string
	precisions []string // empty: all
	lines      []figure.Line
	figures    []string
	cause      string
	next       string
}

// The codes of reasons about engines that cannot be run.
const (
	ReasonRun     = "run_failed"
	ReasonRuntime = "runtime"
	ReasonServer  = "server"
)

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
		cause: "the engine hardly looks at its input; often its calibration data is prepared in another way",
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
	{codes: []string{validators.ReasonClients},
		cause: "the server mixes requests, because it pads or stacks them to batches or they share memory; or it fails under load",
		next:  "turn off batching, or give each request memory of its own, and mlpromote verify --through again"},
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
	{codes: []string{ReasonRuntime},
		cause: "the target lets in runtimes that cannot load the engine",
		next:  "mlpromote build again, or narrow the target"},
	{codes: []string{ReasonServer},
		cause: "the server's configuration names another file, type, shape or version than the engine has",
		next:  "compare the files of the server with mlpromote inspect " + RefMark + "; then mlpromote verify --through again"},
	{codes: []string{ReasonRun},
		cause: "a crash or an error of the runtime, which the line above repeats",
		next:  "mlpromote verify again; if it stays, take another version of the toolchain"},
	{codes: []string{validators.ReasonNotRun},
		cause: "a part of the verification did not run, so nothing failed and nothing is proven",
		next:  nextShow},
}

// Of returns the likely cause of a reason of an engine, and what to do next.
func Of(r evidence.Reason, precision string) (likely, next string) {
	numbers, _ := artifact.NumberFormat(precision)
	for _, row := range causes {
		if slices.Contains(row.codes, r.Code) && (row.precisions == nil || slices.Contains(row.precisions, numbers)) &&
			(row.lines == nil || slices.Contains(row.lines, validators.LineOf(r))) && (row.figures == nil || slices.Contains(row.figures, r.Figure)) {
			return row.cause, row.next
		}
	}
	return "not known", nextShow
}

// OfConversion is Of where the reference model itself computes something else for inputs as the engines take them.
func OfConversion(r evidence.Reason, precision string) (likely, next string) {
	if slices.Contains(beyondLimits, r.Code) {
		return "the engine takes the inputs with fewer digits than the cases have, as the warning describes",
			"train the model on inputs of that type, or allow the difference in limits, " + nextBuild
	}
	return Of(r, precision)
}

// servedCauses goes before causes for engines that a model server ran.
var servedCauses = []cause{
	{codes: beyondLimits,
		cause: "the server changes the answers: its configuration, its code or the form of its numbers, such as rounded JSON or outputs in another order",
		next:  nextBare},
	{codes: []string{validators.ReasonShape, validators.ReasonBatch, validators.ReasonDimension},
		cause: "the server adds or drops an axis, or pads or cuts batches",
		next:  nextBare},
	{codes: []string{ReasonRun},
		cause: "the server ended or refused a request, as the line above repeats",
		next:  "find the reason in the log of the server, and mlpromote verify --through again"},
}

// nextBare tells whether a server or the engine is at fault.
const nextBare = "mlpromote verify without --through shows whether the engine passes alone; if so, compare the case in report show --through with the answer of the server"

// OfServed is Of for an engine that a model server ran.
func OfServed(r evidence.Reason, precision string) (likely, next string) {
	for _, row := range servedCauses {
		if slices.Contains(row.codes, r.Code) {
			return row.cause, row.next
		}
	}
	return Of(r, precision)
}
