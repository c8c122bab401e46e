package figure

import (
	"maps"
	"math"
)

// The names of the figures in stored limits, reports and policies.
const (
	Elements     = "elements"
	Cosine       = "cosine"
	SNR          = "snrDb"
	MaxAbs       = "maxAbs"
	MaxError     = "maxError"
	CaseError    = "caseError"
	QuarterError = "quarterError"
	Systematic   = "systematic"
	Top1         = "top1"
	Equal        = "equal"
	KeptClasses  = "classes"
	Groups       = "groups"
	Detections   = "detections"
	Close        = "close"
	Accuracy     = "accuracy"
	Drop         = "drop"
	Relative     = "relative"
	Regression   = "regression"
)

const largest = math.MaxFloat64

// by takes a number for each precision; 0 for none.
func by(f32, bf16, f16, f8, i8, i4 float64) map[string]float64 {
	all := map[string]float64{"fp32": f32, "bf16": bf16, "fp16": f16, "fp8": f8, "int8": i8, "int4": i4}
	maps.DeleteFunc(all, func(_ string, v float64) bool { return v == 0 })
	return all
}

// equalAnswers are the default limits on the share of equal answers, and usualAnswers the part of
// the cases with another answer from engines without a fault: two classes have almost the same score.
var (
	equalAnswers = by(0.99, 0.97, 0.98, 0.95, 0.95, 0.85)
	usualAnswers = by(0.001, 0.01, 0.003, 0.015, 0.015, 0.04)
)

// table has a row for each figure, in the order of a report. The default limits are the choice of
// this project, since no standard has any: docs/validation.md counts how often they let faults
// pass, and refuse engines without a fault.
var table = []Row{
	{Name: Elements, Line: EveryCase, Word: "elements beyond their tolerance", Subject: Rule},
	{
		Name: Cosine, Line: EveryCase, Key: "cosine", Word: "cosine of the worst case", Phrase: "the cosine of the worst case",
		Doc:  "Cosine similarity of the worst case",
		Unit: Fine, Low: -1, High: 1, AtLeast: true,
	},
	{
		Name: SNR, Line: EveryCase, Key: "snr", Word: "signal to noise", Phrase: "the signal to noise ratio in dB",
		Doc:  "Variance of the reference over the mean squared difference, in dB",
		Unit: Decibels, Low: -largest, High: largest, AtLeast: true, Overall: true, OfSpread: true, Scope: Numbers, State: 6,
		Defaults: by(80, 25, 40, 12, 12, 6),
	},
	{
		Name: MaxAbs, Line: EveryCase, Key: "max_abs", Word: "largest error", Phrase: "the largest error",
		Doc:  "Largest difference of any element",
		High: largest,
	},
	{
		Name: MaxError, Line: EveryCase, Key: "max_error", Word: "largest error / spread",
		Phrase: "the largest error, in standard deviations of the reference's values,",
		Doc:    "Largest difference of any element, divided by the standard deviation of the reference's values",
		High:   largest, OfSpread: true, BesideQuarters: 2.5, Scope: Numbers,
		Defaults: by(2e-3, 0.5, 0.1, 2.5, 2.5, 2.5), Values: by(2e-3, 0.5, 0.1, 1.5, 1.5, 2),
	},
	{
		Name: CaseError, Line: EveryCase, Key: "case_error", Word: "error of the worst case / spread",
		Phrase: "the error of the worst case, in standard deviations of the reference's values,",
		Doc:    "Root mean square difference of the worst case, divided by the standard deviation of the reference's values",
		High:   largest, OfSpread: true, BesideQuarters: 2.5, Scope: Numbers, Few: MaxError,
		Defaults: by(1e-3, 0.15, 0.05, 0.8, 0.8, 1.2),
	},
	{
		Name: QuarterError, Line: EveryCase, Key: "quarter_error", Word: "error of the worst quarter / its spread",
		Phrase: "the error in the worst quarter of the reference's values, in spreads of that quarter,",
		Doc:    "Root mean square error in the worst quarter of the reference's values by their size, divided by the spread of that quarter, or four times its bias: of values above 0 that span a factor of ten",
		High:   largest, Overall: true, Whole: true, Sometimes: true, Scope: Values,
		Defaults: by(1e-3, 0.1, 0.05, 0.25, 0.25, 0.5),
	},
	{
		Name: Systematic, Line: Tendency, Key: "systematic", Word: "bias / spread",
		Phrase: "the bias in the errors, in standard deviations of the reference's values,",
		Doc:    "Offset or factor in the errors, of an index along the last axis or of all values, divided by the standard deviation of the reference's values; the offset of one index counts a sixth, and what stands out of the other errors four times",
		High:   largest, Overall: true, Whole: true, OfSpread: true, Scope: Channels,
		Defaults: by(2e-4, 0.05, 0.01, 0.08, 0.03, 0.15), Channels: by(0, 0, 0, 2, 1.5, 0),
	},
	{
		Name: Top1, Line: SameAnswers, Key: "top1", Word: "same best class", Counts: "equal answers",
		Doc:  "Fraction of cases whose largest value is where the reference has it, by what the cases prove",
		Unit: Share, High: 1, AtLeast: true, Rate: true, ZeroIsNone: true, Scope: Ranks, Defaults: equalAnswers, Usual: usualAnswers,
	},
	{
		Name: Equal, Line: SameAnswers, Key: "equal", Word: "same answer", Counts: "equal answers",
		Doc:  "Fraction of cases with the same values as the reference, by what the cases prove",
		Unit: Share, High: 1, AtLeast: true, Rate: true, Scope: Classes, Defaults: equalAnswers, Usual: usualAnswers,
	},
	{
		Name: Detections, Line: SameAnswers, Key: "detections", Word: "detections that agree", Phrase: "the share of detections that agree", Counts: "detections that agree",
		Doc:  "Share of the detections that agree in class and overlap, by what the cases prove: weighed by the square of their scores, as the mean over overlaps from 0.5 to 0.95",
		Unit: Share, High: 1, AtLeast: true, Rate: true, Scope: Detected,
		Defaults: by(0.99, 0.95, 0.98, 0.92, 0.92, 0.8), Usual: by(0.001, 0.02, 0.005, 0.05, 0.05, 0.12),
	},
	{Name: KeptClasses, Line: SameAnswers, Word: "cases that keep a class", Subject: Rule, Unit: Share, AtLeast: true, Rate: true, Whole: true, Refuted: true},
	{Name: Groups, Line: SameAnswers, Word: "groups with always the same answer", Subject: Rule, Overall: true, Whole: true, Sometimes: true},
	{
		Name: Close, Line: EveryCase, Key: "close", Word: "close to the reference", Phrase: "the share of cases that are close to the reference", Counts: "close cases",
		Doc:  "Fraction of cases that are close to the reference, by what the cases prove: not further off than a quarter of the standard deviation, or than six times the error of the middle case",
		Unit: Share, High: 1, AtLeast: true, Rate: true, Whole: true, OfSpread: true, Scope: FewValues,
		// In finer precisions the SNR says more. Half of the others are usual: activations exceed the range that calibration saw.
		Defaults: by(0, 0, 0, 0.96, 0.96, 0.93), UsualPart: 0.5,
	},
	{Name: Accuracy, Line: Labels, Word: "accuracy", Subject: Answers, Unit: Share, AtLeast: true, Rate: true},
	{Name: Drop, Line: Labels, Word: "drop of accuracy", Subject: Answers, Unit: Share, Rate: true},
	{Name: Relative, Line: Labels, Word: "accuracy / the reference's", Subject: Answers, Unit: Share, AtLeast: true, Rate: true},
	{Name: Regression, Line: Labels, Word: "drop against the engine there now", Subject: Answers, Unit: Share, Rate: true},
}
