package validators

import (
	"math"
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/figure"
	"mlpromote.dev/mlpromote/validators/stats"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// ownPrecision has the precisions that numbers of an output have by their type. Engines that are right differ by a last
// place of it, whatever they compute in.
var ownPrecision = map[tensor.DType]string{tensor.Float16: PrecisionFP16, tensor.BFloat16: PrecisionBF16}

// DefaultLimits gives the limits of [PresetDefault] for an output, by its kind: errors relative to
// the spread of the reference's values, per channel for quantities with units of their own; the
// cosine for an embedding; the rate of equal answers for scores, classes and labels, as far
// as the number of cases can prove one. Errors: CodeInvalid for an unknown precision.
func DefaultLimits(precision string, output TensorInfo, cases int) (OutputLimits, error) {
	return presetLimits(PresetDefault, precision, output, cases)
}

// limitedAs is the precision whose default limits an engine has. A compressed engine computes another
// function than the reference model, whatever its numbers are, so all compressed engines have
// the limits of int8.
func limitedAs(precision string) string {
	if numbers, compressed := artifact.NumberFormat(precision); compressed && slices.Contains(Precisions(), numbers) {
		return PrecisionInt8
	}
	return precision
}

// A defaultRate is a default limit on a share of cases, and the part of the cases in which engines
// without a fault differ. The zero defaultRate is none.
type defaultRate struct{ limit, usual float64 }

// rateOf returns the default limit on a share in a precision, before cases have to prove it.
func rateOf(row figure.Row, precision string) defaultRate {
	limit := row.Defaults[precision]
	if row.UsualPart > 0 {
		return defaultRate{limit, row.UsualPart * (1 - limit)}
	}
	return defaultRate{limit, row.Usual[precision]}
}

// preset is what the default limits of an output follow from.
type preset struct {
	name, precision string
	output          TensorInfo
	kind            Kind
	cases           int
}

// presetLimits gives the limits of a preset for an output: see [DefaultLimits].
func presetLimits(name, precision string, output TensorInfo, cases int) (OutputLimits, error) {
	p := preset{name, limitedAs(precision), output, output.Kind, cases}
	if !slices.Contains(Precisions(), p.precision) {
		return OutputLimits{}, registry.Errorf(registry.CodeInvalid,
			"limits: precision %q: want one of %s", precision, strings.Join(Precisions(), ", "))
	}
	if p.kind == "" {
		p.kind, _ = GuessKind(output, "")
		p.output.Kind = p.kind
	}
	var limits OutputLimits
	for _, row := range figure.OfOutputs() {
		if limit, ok := p.limit(row); ok && p.has(row) {
			limits.SetBound(row, limit)
		}
	}
	limits.QuartersAlone = limits.QuarterError != nil
	if p.apart() {
		limits.PerChannel = new(true)
	}
	return limits, nil
}

// has reports whether the output has a default limit on a figure.
func (p preset) has(row figure.Row) bool {
	answers := p.kind.Names() || p.output.Ranks() && p.output.DType.Class() != tensor.ClassFloat || p.output.DType.Class() == tensor.ClassBool
	if p.kind == KindDetections || row.Scope == figure.Detected {
		return p.kind == KindDetections && row.Scope == figure.Detected
	}
	if answers || row.Scope == figure.Classes {
		return answers && row.Scope == figure.Classes
	}
	switch row.Scope {
	case figure.Numbers:
		return true
	case figure.Channels:
		return p.kind != KindMask || p.classifies()
	case figure.Ranks:
		return p.output.Ranks() || p.classifies()
	case figure.Values:
		return p.kind == KindValue
	case figure.FewValues:
		return p.output.Few() && !p.kind.Ranks() // the noise of a probability is of no one size
	}
	return false
}

// classifies reports whether the output is a mask with scores of classes at each place.
func (p preset) classifies() bool {
	_, ok := p.output.ClassAxis()
	return ok
}

// apart reports whether each channel of the output is held to a spread of its own.
func (p preset) apart() bool {
	return (p.kind == KindValue || p.kind == KindBoxes) && p.output.channels() && p.output.DType.Class() != tensor.ClassBool
}

// limit is the default limit on a figure; false if there is none.
func (p preset) limit(row figure.Row) (float64, bool) {
	if row.Rate {
		r := p.rate(row)
		return ProvableRate(r.limit, r.usual, p.cases), r.limit != 0
	}
	if other, ok := figure.Find(row.Few); ok && p.output.Few() {
		return p.limit(other)
	}
	defaults := row.Defaults
	if row.Values != nil && (p.kind == KindValue || p.kind == KindProbability) {
		defaults = row.Values
	}
	limit, ok := defaults[p.precision]
	if own, has := defaults[ownPrecision[p.output.DType]]; has {
		limit = row.Looser(limit, own)
	}
	if p.name == PresetStrict {
		limit = row.Half(limit)
	}
	if p.kind == KindState {
		limit += row.State
	}
	if factor, has := row.Channels[p.precision]; has && p.apart() {
		limit *= factor
	}
	return limit, ok
}

// rate is the default limit on a share, before cases have to prove it.
func (p preset) rate(row figure.Row) defaultRate {
	r, own := rateOf(row, p.precision), rateOf(row, ownPrecision[p.output.DType])
	switch {
	case r.limit == 0:
		r = own
	case own.limit != 0:
		r = defaultRate{row.Looser(r.limit, own.limit), max(r.usual, own.usual)}
	}
	if p.name == PresetStrict && r.limit != 0 {
		r.limit = row.Half(r.limit)
	}
	if row.UsualPart > 0 {
		r.usual = row.UsualPart * (1 - r.limit)
	}
	if p.kind == KindTokens {
		r.usual *= tokensUsual
	}
	return r
}

// tokensUsual is how many times as often engines without a fault choose another token than another class: next tokens are often almost tied.
const tokensUsual = 3

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
