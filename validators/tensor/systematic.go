package tensor

import "math"

// certainty is the quantile of the standard normal distribution, 0.9987, that a part of a line must
// exceed before it counts.
const certainty = 3

// systematic sets the part of the errors that straight lines explain.
func (c *Comparison) systematic(r *Result) {
	if c.broken {
		r.Systematic = math.Inf(1)
		return
	}
	if c.channels.off {
		return
	}
	for i, s := range c.channels.sums {
		spread := r.Spreads[0]
		if len(r.Spreads) == len(c.channels.sums) {
			spread = r.Spreads[i]
		}
		part := s.line(len(c.errors2))
		switch {
		case part == 0:
			continue
		case spread == 0:
			part = math.Inf(1)
		default:
			part /= spread
		}
		r.Systematic = max(r.Systematic, part)
	}
}

// line fits error = offset + slope*(reference-mean) by least squares and returns the root mean
// square of the line, without what chance explains. Both parts have the standard error
// sqrt(rest/m), where rest is the variance of what the line leaves. m is the number of cases, not of
// elements: errors within a case go together, as those of the words of a sentence do. One or two cases
// say nothing of that, so there elements count.
func (s channelSums) line(cases int) float64 {
	if s.n < 3 {
		return 0
	}
	n := float64(s.n)
	m := min(n, float64(cases))
	if m < 3 {
		m = n
	}
	offset, mean := s.err/n, s.from/n
	slope := 0.0 // times the standard deviation of the reference
	if variance := s.from2/n - mean*mean; variance > s.from2/n*0x1p-50 {
		slope = (s.cross/n - mean*offset) / math.Sqrt(variance)
	}
	rest := max(s.err2-n*(offset*offset+slope*slope), 0) / (n - 2)
	chance := studentT(certainty, m-2) * math.Sqrt(rest/m)
	return math.Hypot(max(math.Abs(offset)-chance, 0), max(math.Abs(slope)-chance, 0))
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
