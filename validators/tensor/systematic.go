package tensor

import "math"

// standardErrors is how many of its standard errors a part of a line must have before it counts.
const standardErrors = 3

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
		part := s.line()
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
// sqrt(rest/n), where rest is the variance of what the line leaves, with n-2 degrees of freedom.
func (s channelSums) line() float64 {
	if s.n < 3 {
		return 0
	}
	n := float64(s.n)
	offset, mean := s.err/n, s.from/n
	slope := 0.0 // times the standard deviation of the reference
	if variance := s.from2/n - mean*mean; variance > s.from2/n*0x1p-50 {
		slope = (s.cross/n - mean*offset) / math.Sqrt(variance)
	}
	rest := max(s.err2-n*(offset*offset+slope*slope), 0) / (n - 2)
	chance := standardErrors * math.Sqrt(rest/n)
	return math.Hypot(max(math.Abs(offset)-chance, 0), max(math.Abs(slope)-chance, 0))
}
