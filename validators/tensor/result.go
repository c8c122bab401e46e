package tensor

import (
	"math"
	"slices"

	"mlpromote.dev/mlpromote/registry/figure"
)

// OtherChannels are the figures of the channels that are not furthest from the rest, relative to their own spread.
type OtherChannels struct {
	Without       int // channels that were left out
	SNR, MaxError float64
}

// Result is the result of a comparison. A figure may be infinite; only Top1 may be NaN, if it
// is undefined.
//
// NaN compared with NaN, and an infinity with the same infinity, count as equal: the error is
// zero, and they are left out of cosine and SNR. Any other pair with a NaN or an infinity, or
// with a difference that overflows, has no finite error: its absolute and relative error are
// +Inf and its element fails. So a comparison with NaN never passes a limit.
type Result struct {
	// Cases and Elements count the compared cases and elements. An empty tensor is a case without elements;
	// it passes.
	Cases    int
	Elements int64
	// Float is set if the values are floats. Identical is how many cases there are, without copies and cases that do
	// not count, if every case has the bits of the reference; 0 if one has not, and if the reference has the same bits
	// in all.
	Float     bool
	Identical int
	// Failed is the number of elements outside the tolerances of Options.
	Failed int64
	// MaxAbs and MeanAbs are taken over |engine-reference| of all elements;
	// MaxAbsCase is the first case that has the maximum, -1 if it is 0.
	MaxAbs, MeanAbs float64
	MaxAbsCase      int
	// MaxRel is the maximum of |engine-reference| / max(|reference|, RelFloor);
	// MaxRelCase is the first case that has it, -1 if it is 0.
	MaxRel     float64
	MaxRelCase int
	// CosineMin is the smallest cosine similarity of a case, each case taken as
	// one vector: exactly 1 for equal vectors and for no cases, 0 if just one is
	// zero, if an element has no finite error, or if the squares leave the
	// range of float64. CosineMinCase is the first case that has it, -1 for none.
	CosineMin     float64
	CosineMinCase int
	// SNR is the signal to noise ratio in dB over all elements,
	// 10*log10(sum of reference^2 / sum of error^2): +Inf for equal outputs,
	// -Inf if an element has no finite error, if the reference is zero, or if
	// the squares leave the range of float64.
	SNR float64
	// Top1 is the fraction of rows along the last axis in which the largest
	// element has the same index on both sides (as by Argmax), of the Top1Rows rows of outputs with a last dimension
	// above 1. Without such rows it is NaN: compare it as !(Top1 >= limit).
	Top1     float64
	Top1Rows int64
	// Prefix is the mean over the cases of the share of these rows that agree before the first one that
	// does not: of tokens, the longest common prefix. Without such rows it is NaN.
	Prefix float64
	// Top1Misses and EqualMisses are sums over the cases: of the share of rows in which the
	// largest element has another index, and of the share of elements that are not equal.
	Top1Misses, EqualMisses float64
	// Top1Cases and FullCases count the cases that have such rows, and that have elements: elements that
	// are NaN, the same infinity or a fill value on both sides do not count. Nor do rows with a NaN on both sides, of
	// fill values alone, or in which each side has one value throughout: they are left out of Top1Misses, too.
	Top1Cases, FullCases int
	// Spread is the standard deviation of the reference's values: of all, or with
	// Options.Channels the smallest one of a channel. It is their root mean square if all
	// values of the reference are the same, and 0 if they are all 0. From 20 cases
	// on, a twentieth may be left out: the cases furthest from the rest, as long as the others have less than half of
	// the spread. Then SpreadSNR, MaxError and CaseError are the worse of all cases, relative to the spread of all, and
	// of the others, relative to theirs.
	Spread float64
	// NoChannels is true if Options.Channels cannot be kept, since the last axis differs between cases
	// or is longer than [MaxChannels]: then all figures are relative to the spread of all values.
	NoChannels bool
	// Fill is Options.Fill: the magnitude from which values were taken for fill values.
	Fill float64
	// Spreads is Spread, or with Options.Channels the spread of each channel.
	Spreads []float64
	// SpreadSNR is 10*log10(Spread^2 / mean of error^2) in dB: unlike SNR, a constant part of
	// the reference does not hide errors. MaxError is MaxAbs / Spread. With Options.Channels
	// both are those of the worst channel. Without an error they are +Inf and 0; where Spread is
	// 0, or an element has no finite error, -Inf and +Inf.
	SpreadSNR, MaxError float64
	// MaxErrorCase is the first case that has MaxError; -1 if it is 0, and with several channels.
	MaxErrorCase int
	// Others are the channels that are left if those are left out that are furthest from the rest, by the rule for cases.
	// SpreadSNR and MaxError are the worse of theirs and of those of all. Nil if none is left out; so it is with
	// Options.Channels, without Options.Systematic and if the last axis differs between cases.
	Others *OtherChannels
	// CaseError is the root mean square error of the worst case divided by the spread of all
	// values; CaseErrorCase is the first case that has it, -1 if it is 0.
	CaseError     float64
	CaseErrorCase int
	// FarCases counts, of FullCases, those whose error is above a quarter of the standard deviation of all values and
	// above six times the error of the middle case: with Options.Channels in any channel. NoFar is true if that is not
	// known, since there are more than 16 channels, or another number of them in each case.
	FarCases int
	NoFar    bool
	// CaseErrors counts the cases by their root mean square error divided by the spread of all
	// values, in decades: below 1e-8, from there to below 1e-7, and so on; the last of the
	// [Decades] is 1 and above, with elements that have no finite error.
	CaseErrors [Decades]int
	// CaseDegrees are the degrees of freedom that the noise of a case has: 2*mean^2/variance of the
	// mean squared errors of cases (Satterthwaite), with Options.Channels the counts of the channel
	// that has the fewest. They are few where few cases have most of the noise. 0 without an error.
	CaseDegrees float64
	// Systematic is, with Options.Systematic, the part of the errors that follows from the
	// reference's values: along a straight line in the worst channel, an index along the last axis,
	// or without Options.Channels along a curve of third degree through all values, if that is
	// more. It is the root of the squares of offset, factor and bends, each less three standard
	// errors, so that chance in few values gives 0, divided by the spread. What exceeds the rest of
	// the errors in a channel, or half of it in all values, counts four times: rounding explains no
	// more. The offset of one channel counts a sixth, and that of c channels together c sixths, at
	// most in full, as do bends: rounding moves single channels, and seldom all alike. If the last axis
	// differs between cases, or is longer than [MaxChannels], it is the value of all channels together.
	// +Inf if an element has no finite error.
	Systematic float64
	// SystematicAt is the channel that has Systematic, -1 for all values. Offset is the mean error there, less three standard errors; 0 where
	// a factor or bends are more.
	SystematicAt int
	Offset       float64
	// Quarters are, with Options.Quarters, the errors by the size of the reference's values, of the worst channel; nil without values of
	// many magnitudes, which are above 0.
	Quarters *Quarters
	// DetectionMisses is the sum over DetectionCases of the share of detections that do not agree, where the output has detections; see
	// accuracy.Agreement.
	DetectionMisses float64
	DetectionCases  int
	// Groups are groups of cases, where somebody asked for them; see [Comparison.Groups].
	Groups *Groups
	// Classes are the classes that the reference answers, of integers and of rows: from 0 to 255, and all others together. Without answers there are none.
	Classes []ClassCases
	// NewNaN and NewInf count the elements that are NaN, or an infinity, in the engine's
	// output, but not (or with the other sign) in the reference model's.
	NewNaN, NewInf int64
	// Worst is the element furthest outside the tolerances or, if all pass, the one closest to
	// them; the first of several. Nil if no element differs.
	Worst *Element
}

// Element is one element of one case.
type Element struct {
	Case int
	// Index has one entry per dimension; empty for a scalar.
	Index             []int64
	Reference, Engine float64
	// Excess is |engine-reference| - (ATol + RTol*|reference|): above 0 if the
	// element fails, +Inf without a finite error.
	Excess float64
}

// Figure returns a figure by its name in package figure, and the case that has it; -1 for a figure
// over all cases, and if no case differs. It is NaN for a share of cases: see Misses.
func (r Result) Figure(name string) (value float64, worst int) {
	switch name {
	case figure.Elements:
		if r.Worst != nil {
			return float64(r.Failed), r.Worst.Case
		}
		return float64(r.Failed), -1
	case figure.Cosine:
		return r.CosineMin, r.CosineMinCase
	case figure.SNR:
		return r.SpreadSNR, -1
	case figure.MaxAbs:
		return r.MaxAbs, r.MaxAbsCase
	case figure.MaxError:
		return r.MaxError, r.MaxErrorCase
	case figure.CaseError:
		return r.CaseError, r.CaseErrorCase
	case figure.Systematic:
		return r.Systematic, -1
	case figure.QuarterError:
		if r.Quarters != nil {
			return r.Quarters.Worst().Error, -1
		}
	case figure.Groups:
		if r.Groups != nil && r.Groups.Count > 0 {
			return float64(r.Groups.Lost), -1
		}
	}
	return math.NaN(), -1
}

// Misses returns how many of the cases miss a share: those with another answer, or far from the
// reference. It is NaN for other figures.
func (r Result) Misses(name string) (misses float64, cases int) {
	switch name {
	case figure.Top1:
		return r.Top1Misses, r.Top1Cases
	case figure.Equal:
		return r.EqualMisses, r.FullCases
	case figure.Detections:
		return r.DetectionMisses, r.DetectionCases
	case figure.Close:
		return float64(r.FarCases), r.FullCases
	}
	return math.NaN(), 0
}

// Result returns the figures over the cases added so far.
func (c *Comparison) Result() Result {
	r := c.result
	r.Fill = c.options.Fill
	if c.differs || !c.varies { // a constant shows nothing
		r.Identical = 0
	}
	r.SNR = c.snr()
	c.spread(&r)
	r.Top1, r.Prefix = math.NaN(), math.NaN()
	r.Classes, r.Quarters = c.classes.list(), c.sizes.quarters()
	if r.Top1Rows > 0 {
		r.Top1 = float64(c.agreed) / float64(r.Top1Rows)
		r.Prefix = c.prefixes / float64(r.Top1Cases)
	}
	switch {
	case c.broken:
		r.MeanAbs = math.Inf(1)
	case r.Elements > 0:
		r.MeanAbs = c.sums.abs / float64(r.Elements)
	}
	if r.Worst != nil {
		worst := *r.Worst
		worst.Index = slices.Clone(worst.Index)
		r.Worst = &worst
	}
	return r
}

func (c *Comparison) snr() float64 {
	switch {
	case c.result.MaxAbs == 0:
		return math.Inf(1)
	case c.broken || !inRange(c.sums.err2) || !inRange(c.sums.ref2):
		return math.Inf(-1)
	}
	return 10 * math.Log10(c.sums.ref2/c.sums.err2)
}

// inRange reports whether a sum of squares is not zero and not affected by overflow or by the
// loss of precision near underflow.
func inRange(sum float64) bool { return sum >= 1e-290 && sum <= math.MaxFloat64 }
