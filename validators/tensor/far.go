package tensor

import (
	"math"
	"slices"
)

// A case is far from the reference if its error is above this part of the spread, and above this many times the error of the
// middle case: noise of one size, however large, puts next to no case there.
const (
	farSpread = 0.25
	farTimes  = 6
)

// far calls add with the place of each case that is far from the reference, relative to a spread.
func far(cases []moments, spread float64, add func(at int)) {
	errors := make([]float64, 0, len(cases))
	for _, m := range cases {
		if m.says() {
			errors = append(errors, m.rmse)
		}
	}
	if len(errors) == 0 {
		return
	}
	slices.Sort(errors)
	limit := max(farSpread*spread, farTimes*errors[(len(errors)-1)/2])
	for at, m := range cases {
		if m.says() && (m.rmse > limit || math.IsInf(m.rmse, 1)) {
			add(at)
		}
	}
}

// says reports whether there is an error, finite or not, of a case that counts.
func (m moments) says() bool { return !m.copied && (m.n > 0 || m.rmse > 0) }

// far sets Result.FarCases and Result.NoFar: with Options.Channels a case is far if it is in any channel. The spread is that of all cases, also where
// few are far out: what int8 can tell apart is a part of the range, and the other figures hold most cases to their own spread.
func (c *Comparison) far(r *Result, p *pool) {
	found := make(map[int]bool)
	add := func(at int) { found[at] = true }
	switch {
	case !c.options.Channels || c.broken:
		far(p.cases, p.whole(), add)
	case c.channels.off || len(c.channels.sums) > maxUnits:
		r.NoFar = true
		return
	default:
		for _, s := range c.channels.sums {
			far(s.cases, deviation(float64(s.n), s.from, s.from2, s.ref2), add)
		}
	}
	r.FarCases = countable(c.each, found)
}

// countable counts those of the cases that count for rates.
func countable(each []CaseFigures, found map[int]bool) (n int) {
	for at := range found {
		if !math.IsNaN(each[at].Equal) {
			n++
		}
	}
	return n
}
