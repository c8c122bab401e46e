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

// excess is how many times a part counts beyond the share of the rest of the errors that rounding explains: all of
// it in a channel, which one of 1415 int8 and int4 engines without a fault exceeded, by 0.003 spreads, and half of it
// in all values alike, which int8 engines exceeded by at most 0.001 and int4 engines by 0.028. So limits that let a noisy engine through hold a precise one to less.
const (
	excess       = 4
	channelShare = 1.0
	wholeShare   = 0.5
)

// counts returns what the parts count, in their unit: offset and bends times a weight, the factor in full.
func (f fit) counts(weight, share float64) float64 {
	part := math.Hypot(weight*math.Hypot(f.offset, math.Hypot(f.square, f.cube)), f.factor)
	return max(part, excess*(part-share*f.rest))
}

// systematic sets the part of the errors that follows from the reference's values: a straight line through each
// channel and, where the channels have one unit, a curve through all values. Where the last axis differs between
// cases it is the latter alone.
func (c *Comparison) systematic(r *Result) {
	if c.broken {
		r.Systematic = math.Inf(1)
		return
	}
	count := func(f fit, err, weight, share, spread float64, at int) { // err has the sign of the offset
		part := f.counts(weight, share)
		if part == 0 {
			return
		}
		of := math.Inf(1)
		if spread > 0 {
			of = part / spread
		}
		if of > r.Systematic {
			r.Systematic, r.SystematicAt, r.Offset = of, at, 0
			if math.Abs(f.offset) > math.Abs(f.factor) {
				r.Offset = math.Copysign(f.offset, err)
			}
		}
	}
	cases := len(c.each)
	if r.SystematicAt = -1; !c.options.Channels || c.channels.off {
		count(c.channels.all.curve(cases), c.channels.all.cross[0], min(1, loneOffset*float64(c.channels.widest)), wholeShare, r.Spread, -1)
	}
	if c.channels.off {
		return
	}
	for i, s := range c.channels.sums {
		spread := r.Spreads[0]
		if len(r.Spreads) == len(c.channels.sums) {
			spread = r.Spreads[i]
		}
		count(s.line(cases), s.err, loneOffset, channelShare, spread, i)
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

// line fits error = offset + slope*(reference-mean) by least squares; the factor is the slope in standard
// deviations of the reference. Both are less what chance explains in so many cases.
func (s channelSums) line(cases int) fit {
	if s.n < 3 {
		return fit{}
	}
	n := float64(s.n)
	f := fit{offset: s.err / n}
	mean := s.from / n
	if variance := s.from2/n - mean*mean; variance > s.from2/n*0x1p-50 {
		f.factor = (s.cross/n - mean*f.offset) / math.Sqrt(variance)
	}
	return f.less(max(s.err2-n*(f.offset*f.offset+f.factor*f.factor), 0)/(n-2), n, cases)
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
