package validators

import (
	"math"
	"strings"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators/stats"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// tolerances are the limits of PresetDefault in one precision. They are this project's choice,
// since no standard has any: docs/validation.md has how often they let faults pass, and refuse
// engines that are right.
type tolerances struct {
	snr      float64 // dB, at least
	maxError float64 // of any element / spread, at most
	// caseError is of the worst case / spread, at most; for outputs of few values maxError is.
	caseError float64
	// systematic is the offset or factor in the errors / spread, at most: see [tensor.Result].
	systematic float64
	// perChannel is how many times as much that may be where each channel is held to a spread of its
	// own: the channels of an output that is quantized share one grid.
	perChannel float64
	cosine     float64 // of an embedding, at least
	// close is the rate of cases that are close to the reference, at least, of outputs of few values, where the cases prove so much; 0
	// where the SNR says more.
	close float64
	rate  float64 // of cases with the same answer, at least, where the cases prove so much
	// usual is the rate of cases that an engine that is right gives another answer for, since
	// two classes have almost the same score.
	usual float64
}

// usuallyFar is how much of 1 - close are cases that are far from the reference in an engine that is right: where activations exceed the
// range that calibration saw.
const usuallyFar = 0.5

// stateSNR is how much more SNR a state has, in dB: it is an input of the next run, so that its
// errors add up.
const stateSNR = 6

var defaults = map[string]tolerances{
	PrecisionFP32: {snr: 80, maxError: 2e-3, caseError: 1e-3, systematic: 2e-4, perChannel: 1, cosine: 0.9999, rate: 0.99, usual: 0.001},
	PrecisionBF16: {snr: 25, maxError: 0.5, caseError: 0.15, systematic: 0.05, perChannel: 1, cosine: 0.995, rate: 0.97, usual: 0.01},
	PrecisionFP16: {snr: 40, maxError: 0.1, caseError: 0.05, systematic: 0.01, perChannel: 1, cosine: 0.999, rate: 0.98, usual: 0.003},
	PrecisionFP8:  {snr: 12, maxError: 2.5, caseError: 0.8, close: 0.96, systematic: 0.08, perChannel: 2, cosine: 0.98, rate: 0.95, usual: 0.015},
	PrecisionInt8: {snr: 12, maxError: 2.5, caseError: 0.8, close: 0.96, systematic: 0.03, perChannel: 1.5, cosine: 0.98, rate: 0.95, usual: 0.015},
	PrecisionInt4: {snr: 6, maxError: 2.5, caseError: 1.2, close: 0.93, systematic: 0.15, perChannel: 1, cosine: 0.95, rate: 0.85, usual: 0.04},
}

// ownPrecision has the precisions that numbers of an output have by their type. Engines that are right differ by a last
// place of it, whatever they compute in.
var ownPrecision = map[tensor.DType]string{tensor.Float16: PrecisionFP16, tensor.BFloat16: PrecisionBF16}

// orLooser takes the looser of each two.
func (t tolerances) orLooser(o tolerances) tolerances {
	return tolerances{snr: min(t.snr, o.snr), maxError: max(t.maxError, o.maxError), caseError: max(t.caseError, o.caseError),
		systematic: max(t.systematic, o.systematic), perChannel: t.perChannel, cosine: min(t.cosine, o.cosine), close: max(t.close, o.close), rate: min(t.rate, o.rate), usual: max(t.usual, o.usual)}
}

// DefaultLimits gives the limits of [PresetDefault] for an output, by its kind: errors relative to
// the spread of the reference's values, per channel for quantities with units of their own; the
// cosine for an embedding; the rate of equal answers for scores, classes and labels, as far
// as the number of cases can prove one. Errors: CodeInvalid for an unknown precision.
func DefaultLimits(precision string, output TensorInfo, cases int) (OutputLimits, error) {
	return presetLimits(PresetDefault, precision, output, cases)
}

// strict is half of the errors: 6 dB, half of what the figures allow, and half of the answers that may
// differ.
func (t tolerances) strict() tolerances {
	return tolerances{snr: t.snr + 6, maxError: t.maxError / 2, caseError: t.caseError / 2, systematic: t.systematic / 2, perChannel: t.perChannel,
		cosine: halfway(t.cosine), close: halfway(t.close), rate: halfway(t.rate), usual: t.usual}
}

// halfway is between a share and 1; 0, which asks for nothing, stays.
func halfway(share float64) float64 {
	if share == 0 {
		return 0
	}
	return (1 + share) / 2
}

// tolerancesOf returns those of a precision. A compressed engine computes another function than the reference model, whatever its
// numbers are, so all compressed engines have those of int8.
func tolerancesOf(precision string) (tolerances, bool) {
	numbers, compressed := registry.NumberFormat(precision)
	t, ok := defaults[numbers]
	if ok && compressed {
		t = defaults[PrecisionInt8]
	}
	return t, ok
}

// presetLimits gives the limits of a preset for an output: see [DefaultLimits].
func presetLimits(preset, precision string, output TensorInfo, cases int) (OutputLimits, error) {
	t, ok := tolerancesOf(precision)
	if !ok {
		return OutputLimits{}, registry.Errorf(registry.CodeInvalid,
			"limits: precision %q: want one of %s", precision, strings.Join(Precisions(), ", "))
	}
	if own, ok := ownPrecision[output.DType]; ok {
		t = t.orLooser(defaults[own])
	}
	if preset == PresetStrict {
		t = t.strict()
	}
	kind := output.Kind
	if kind == "" {
		kind, _ = GuessKind(output, "")
	}
	rate := &AtLeast{ProvableRate(t.rate, t.usual, cases)}
	if kind.Names() || kind.Ranks() && output.DType.Class() != tensor.ClassFloat || output.DType.Class() == tensor.ClassBool {
		return OutputLimits{Equal: rate}, nil
	}
	limits := OutputLimits{SNRdB: &AtLeast{t.snr}, MaxError: &AtMost{t.maxError}, CaseError: &AtMost{t.caseError}}
	if output.Few() {
		limits.CaseError = &AtMost{t.maxError}
		if t.close > 0 && !kind.Ranks() {
			limits.Close = &AtLeast{ProvableRate(t.close, usuallyFar*(1-t.close), cases)}
		}
	}
	if kind != KindMask { // whose last axis is a place, not a channel
		limits.Systematic = &AtMost{t.systematic}
	}
	switch kind {
	case KindScores, KindProbability, KindTokens:
		limits.Top1 = rate
	case KindState:
		limits.SNRdB = &AtLeast{t.snr + stateSNR}
	case KindEmbedding:
		limits.Cosine = &AtLeast{t.cosine}
	case KindValue, KindBoxes:
		if output.channels() {
			limits.PerChannel = new(true)
			limits.Systematic = &AtMost{t.perChannel * t.systematic}
		}
	}
	return limits, nil
}

// channels reports whether each index along the last dimension can have a spread of its own: cases may
// differ in an open one. That of a single dimension is the batch, of which each case has one.
func (t TensorInfo) channels() bool {
	return len(t.Shape) < 2 || t.last().Symbol == "" && t.last().Size <= tensor.MaxChannels
}

// Few reports whether a case has so few values that its error is that of an element: under 4.
func (t TensorInfo) Few() bool {
	values := int64(1)
	for _, d := range t.Shape[min(1, len(t.Shape)):] {
		if d.Symbol != "" {
			return false
		}
		values *= d.Size
	}
	return values < 4
}

// ProvableRate returns the rate of equal answers that cases can prove at [DefaultConfidence] for an
// engine that usually differs in a share of them, and in one more where there are ten: at most
// rate, in steps of 0.01.
func ProvableRate(rate, usual float64, cases int) float64 {
	misses := 0.0
	if cases >= 10 {
		misses = math.Floor(usual*float64(cases)) + 1
	}
	proven := 1 - stats.UpperRate(misses, cases, DefaultConfidence)
	return math.Min(rate, math.Floor(proven*100)/100)
}
