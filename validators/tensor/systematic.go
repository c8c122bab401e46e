package tensor

import "math"

// certainty is the quantile of the standard normal distribution, 0.9987, that a part of a line must
// exceed before it counts.
const certainty = 3

// loneOffset is what the offset of a single channel counts, and that of c channels together c times
// as much, up to the whole of it. Rounding the weights of a last layer moves each of its channels by
// some constant, in either direction, but hardly scales one, and hardly moves all alike: of 720 outputs
// of int8 engines without a fault the worst channel was moved by up to 0.21 spreads and scaled by up
// to 0.035, and all channels together were moved by 0.014 and scaled by 0.009.
const loneOffset = 1.0 / 6

// systematic sets the part of the errors that straight lines explain: one through each channel and,
// where the channels have one unit, one through all values. Where the last axis differs between cases
// it is the latter alone.
func (c *Comparison) systematic(r *Result) {
	if c.broken {
		r.Systematic = math.Inf(1)
		return
	}
	count := func(s channelSums, spread, offsets float64) {
		offset, factor := s.line(len(c.errors2))
		switch part := math.Hypot(offset*offsets, factor); {
		case part == 0:
		case spread == 0:
			r.Systematic = math.Inf(1)
		default:
			r.Systematic = max(r.Systematic, part/spread)
		}
	}
	if c.channels.off {
		count(c.channels.sums[0], r.Spread, min(1, loneOffset*float64(c.channels.widest)))
		return
	}
	for i, s := range c.channels.sums {
		spread := r.Spreads[0]
		if len(r.Spreads) == len(c.channels.sums) {
			spread = r.Spreads[i]
		}
		count(s, spread, loneOffset)
	}
	if !c.options.Channels {
		count(c.channels.whole(c.shift), r.Spread, min(1, loneOffset*float64(len(c.channels.sums))))
	}
}

// whole returns the sums over all channels, of the differences from one shift.
func (c *channels) whole(shift float64) channelSums {
	all := channelSums{shift: shift}
	for _, s := range c.sums {
		n, apart := float64(s.n), s.shift-shift
		all.n += s.n
		all.err += s.err
		all.err2 += s.err2
		all.cross += s.cross + apart*s.err
		all.from += s.from + n*apart
		all.from2 += s.from2 + 2*apart*s.from + n*apart*apart
	}
	return all
}

// line fits error = offset + slope*(reference-mean) by least squares and returns the sizes of both
// parts, without what chance explains; the slope is in standard deviations of the reference. Both have
// the standard error sqrt(rest/m), where rest is the variance of what the line leaves. m is the number
// of cases, not of elements: errors within a case go together, as those of the words of a sentence do.
// One or two cases say nothing of that, so there elements count.
func (s channelSums) line(cases int) (offset, factor float64) {
	if s.n < 3 {
		return 0, 0
	}
	n := float64(s.n)
	m := min(n, float64(cases))
	if m < 3 {
		m = n
	}
	offset = s.err / n
	mean := s.from / n
	if variance := s.from2/n - mean*mean; variance > s.from2/n*0x1p-50 {
		factor = (s.cross/n - mean*offset) / math.Sqrt(variance)
	}
	rest := max(s.err2-n*(offset*offset+factor*factor), 0) / (n - 2)
	chance := studentT(certainty, m-2) * math.Sqrt(rest/m)
	return max(math.Abs(offset)-chance, 0), max(math.Abs(factor)-chance, 0)
}

// studentT returns the quantile of Student's t distribution, with this many degrees of freedom,
// that belongs to the normal quantile z: Abramowitz and Stegun, 26.7.5. At z = 3 its error is under
// 1 % from 4 degrees on; below that it is too small.
func studentT(z, degrees float64) float64 {
	z2 := z * z
	terms := []float64{
		z * (z2 + 1) / 4,
		z * ((5*z2+16)*z2 + 3) / 96,
		z * (((3*z2+19)*z2+17)*z2 - 15) / 384,
		z * ((((79*z2+776)*z2+1482)*z2-1920)*z2 - 945) / 92160,
	}
	t, power := z, 1.0
	for _, term := range terms {
		power *= degrees
		t += term / power
	}
	return t
}
