package tensor

import "math"

// MaxChannels bounds the channels with sums of their own. An output with more is taken as a whole.
const MaxChannels = 1 << 16

// extreme is the magnitude from which a value stands for infinity, as the lowest float32 does in
// masks. It says nothing about the spread of the others.
const extreme = 1e30

// floorOfSpread is the least spread of a channel, as a part of the root mean square of its
// values: a channel that hardly changes is not held to more digits than its values have.
const floorOfSpread = 1e-4

// begin prepares for the next case.
func (c *Comparison) begin(reference Tensor) {
	if !c.shifted && reference.Len() > 0 {
		c.shifted, c.shift = true, c.firstOf(reference)
	}
	if c.options.Channels || c.options.Systematic {
		c.channels.limit = c.options.limit()
		c.channels.begin(reference.Shape, c.shift)
	}
}

// firstOf is the first value; 0 where there is none, or none that says something about the spread.
func (c *Comparison) firstOf(t Tensor) float64 {
	if t.Len() == 0 {
		return 0
	}
	if first := t.Float64(0); math.Abs(first) < c.options.limit() {
		return first
	}
	return 0
}

// spread sets the figures that are relative to the spread of the reference's values.
func (c *Comparison) spread(r *Result) {
	p := c.pool()
	p.set(r)
	r.CaseErrors = p.histogram(p.whole())
	r.CaseDegrees = c.degrees()
	r.NoChannels = c.options.Channels && c.channels.off
	switch {
	case c.options.Channels && !c.broken:
		c.channels.worst(r, c.options.Spreads)
	case c.options.Systematic && !c.broken && len(c.options.Spreads) == 0:
		c.channels.withoutFurthest(r, p.whole())
	}
	if c.options.Systematic {
		c.systematic(r)
	}
	c.far(r, p)
}

// toSpread returns the signal to noise ratio in dB and the largest error, both relative to a
// spread. An infinite maxAbs stands for an element without a finite error.
func toSpread(spread, err2, n, maxAbs float64) (snr, maxError float64) {
	switch {
	case maxAbs == 0:
		return math.Inf(1), 0
	case !(spread > 0 && spread <= math.MaxFloat64) || math.IsInf(maxAbs, 0) || math.IsInf(err2, 0):
		return math.Inf(-1), math.Inf(1)
	}
	return 10 * math.Log10(spread*spread*n/err2), maxAbs / spread
}

// deviation returns the standard deviation of n values from the sums of their differences from
// a shift, and of the squares of those: sqrt(mean(d^2) - mean(d)^2). Where it is 0 it returns
// the root mean square of the values.
func deviation(n, from, from2, ref2 float64) float64 {
	if n == 0 {
		return 0
	}
	if of := variance(n, from, from2); of > 0 {
		return math.Sqrt(of)
	}
	return math.Sqrt(ref2 / n)
}

// variance is 0 where no digit of it is left.
func variance(n, from, from2 float64) float64 {
	mean := from / n
	if of := from2/n - mean*mean; of > from2/n*0x1p-50 {
		return of
	}
	return 0
}

// degrees returns [Result.CaseDegrees].
func (c *Comparison) degrees() float64 {
	cases := float64(c.result.FullCases)
	if c.options.Channels && !c.channels.off {
		least := 0.0
		for _, s := range c.channels.sums {
			if own := satterthwaite(s.err2, s.squares, cases); own > 0 && (least == 0 || own < least) {
				least = own
			}
		}
		return least
	}
	var sum, squares float64
	for _, of := range c.each {
		if math.IsNaN(of.Equal) {
			continue // a copy
		}
		mean := of.RMSE * of.RMSE
		sum += mean
		squares += mean * mean
	}
	return satterthwaite(sum, squares, cases)
}

// maxDegrees is what degrees of freedom are where all cases have the same noise.
const maxDegrees = 1e6

// satterthwaite returns 2*mean^2/variance from the sum of n values and that of their squares: 0 where
// there is none, or no finite one.
func satterthwaite(sum, squares, n float64) float64 {
	if !(sum > 0 && squares > 0 && squares <= math.MaxFloat64) {
		return 0
	}
	mean := sum / n
	return min(2*mean*mean/max(squares/n-mean*mean, 0), maxDegrees)
}

// Decades is the number of counts in [Result.CaseErrors].
const Decades = 10

// decades are the upper ends of all but the last.
var decades = [Decades - 1]float64{1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1}

// channels are sums for each index along the last axis.
type channels struct {
	at     int
	sums   []channelSums
	widest int64 // length of the last axis
	off    bool  // the last axis differs between cases, or is too long: then sums has one, of all values
	all    powers
	shift  float64 // of all
	limit  float64 // of values that say something about the spread
}

type channelSums struct {
	n                              int64
	shift, from, from2, ref2, err2 float64
	err, cross                     float64 // of the errors, and of their products with reference-shift
	maxAbs                         float64
	squares                        float64   // of the squared errors of cases
	now                            caseSums  // of the case at hand
	cases                          []moments // kept where the channels have units of their own
}

// end adds the case at hand.
func (s *channelSums) end(keep bool) {
	now := s.now
	s.n += int64(now.n)
	s.from += now.from
	s.from2 += now.from2
	s.ref2 += now.ref2
	s.err2 += now.err2
	s.squares += now.err2 * now.err2
	s.maxAbs = max(s.maxAbs, now.maxAbs)
	if keep {
		s.cases = append(s.cases, now.moments(s.shift))
	}
	s.now = caseSums{}
}

// end ends a case.
func (c *channels) end(keep bool) {
	for i := range c.sums {
		c.sums[i].end(keep && len(c.sums) <= maxUnits)
	}
}

// begin prepares for a case. A case without elements says nothing about the last axis.
func (c *channels) begin(shape []int64, shift float64) {
	width := int64(1)
	if len(shape) > 0 {
		width = shape[len(shape)-1]
	}
	c.at, c.widest, c.shift = 0, max(c.widest, width), shift
	switch {
	case c.off || width == 0:
	case c.sums == nil && width <= MaxChannels:
		c.sums = make([]channelSums, width)
	case width != int64(len(c.sums)):
		c.sums, c.off = []channelSums{c.whole(shift)}, true
	}
}

// next is the channel of the next element.
func (c *channels) next() *channelSums {
	s := &c.sums[c.at]
	if c.at++; c.at == len(c.sums) {
		c.at = 0
	}
	return s
}

// feedCopy processes the next elements of a case that was there before: they say nothing more of the reference's
// values, and only the largest error counts.
func (c *channels) feedCopy(ref, eng []float64) {
	if c.sums == nil {
		return
	}
	for i, r := range ref {
		s := c.next()
		if abs := math.Abs(eng[i] - r); abs <= math.MaxFloat64 {
			s.maxAbs = max(s.maxAbs, abs)
		}
	}
}

// feed processes the next elements of both sides.
func (c *channels) feed(ref, eng []float64) {
	if c.sums == nil {
		return
	}
	for i, r := range ref {
		s := c.next()
		diff := eng[i] - r
		abs := math.Abs(diff)
		if !(abs <= math.MaxFloat64) {
			continue
		}
		if !c.off && s.n == 0 && s.now.n == 0 && math.Abs(r) < c.limit {
			s.shift = r
		}
		d := r - s.shift
		s.now.n++
		s.now.err2 += diff * diff
		s.err += diff
		s.cross += d * diff
		s.now.maxAbs = max(s.now.maxAbs, abs)
		if math.Abs(r) < c.limit {
			s.now.from += d
			s.now.from2 += d * d
			s.now.ref2 += r * r
		}
	}
}

// withoutFurthest lowers the figures to those of the channels that are not furthest from the rest: a few with huge constant
// values, as language models have, must not make the errors of all others look small.
func (c *channels) withoutFurthest(r *Result, spread float64) {
	if c.off {
		return
	}
	all := make([]moments, len(c.sums))
	for i, s := range c.sums {
		all[i] = caseSums{float64(s.n), s.from, s.from2, s.ref2, s.err2, s.maxAbs}.moments(s.shift)
	}
	rest := withoutFurthest(all, spread)
	if !(rest.spread > 0) {
		return
	}
	r.Others = &OtherChannels{len(rest.without), rest.snr(rest.spread), rest.maxAbs / rest.spread}
	if r.SpreadSNR = min(r.SpreadSNR, r.Others.SNR); r.Others.MaxError > r.MaxError {
		r.MaxError, r.MaxErrorCase = r.Others.MaxError, -1
	}
}

// worst sets the figures of the worst channel. A channel in which the reference does not change
// is held to the size of its values, and one that is always 0 to a part of the spread of all.
func (c *channels) worst(r *Result, least []float64) {
	if c.off {
		return
	}
	whole := r.Spread
	if len(c.sums) > 1 {
		r.MaxErrorCase = -1
	}
	r.Spreads = make([]float64, len(c.sums))
	for i, s := range c.sums {
		size := math.Sqrt(s.ref2 / float64(max(s.n, 1)))
		own := deviation(float64(s.n), s.from, s.from2, s.ref2)
		spread := max(own, floorOfSpread*size)
		if spread == 0 {
			spread = floorOfSpread * whole
		}
		if len(least) == len(c.sums) {
			spread = max(spread, least[i])
		}
		snr, maxError := toSpread(spread, s.err2, float64(s.n), s.maxAbs)
		if rest := withoutFurthest(s.cases, own); len(least) == 0 && rest.spread > 0 {
			spread = max(rest.spread, floorOfSpread*rest.size)
			snr, maxError = min(snr, rest.snr(spread)), max(maxError, rest.maxAbs/spread)
		}
		r.Spreads[i] = spread
		if i == 0 {
			r.Spread, r.SpreadSNR, r.MaxError = spread, snr, maxError
		}
		r.Spread, r.SpreadSNR, r.MaxError = min(r.Spread, spread), min(r.SpreadSNR, snr), max(r.MaxError, maxError)
	}
}
