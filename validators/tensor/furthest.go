package tensor

import (
	"cmp"
	"math"
	"slices"
)

// Cases whose values are far from those of all others must not make the spread so large that errors
// of the others look small. So where the others have less than half of the spread, they are held to
// their own. One case of twenty may be left out.
const (
	oneOf    = 20
	inflated = 2
)

// maxUnits is how many channels may have units of their own for that: more would take much memory.
const maxUnits = 16

// caseSums are those of one case, or of one channel of it.
type caseSums struct {
	number, at                         int // of the case, and its place among all
	n, from, from2, ref2, err2, maxAbs float64
}

// others is what the cases have that are not furthest from the rest; the zero value is none.
type others struct {
	spread, n, err2, maxAbs float64
	size                    float64    // root mean square of the values
	worst                   caseSums   // with the largest mean squared error
	without                 []caseSums // that were left out
}

// snr is in dB, relative to a spread.
func (o others) snr(spread float64) float64 {
	if o.err2 == 0 {
		return math.Inf(1)
	}
	return 10 * math.Log10(spread*spread*o.n/o.err2)
}

// withoutFurthest leaves out the cases that are furthest from the middle one, as long as the others
// have less than half of the spread that was left, but some. It returns nothing if it leaves out none.
func withoutFurthest(all []caseSums, spread float64) others {
	cases := slices.DeleteFunc(slices.Clone(all), func(s caseSums) bool { return s.n == 0 })
	if len(cases) < oneOf {
		return others{}
	}
	byMean := func(a, b caseSums) int { return cmp.Compare(a.from/a.n, b.from/b.n) }
	slices.SortFunc(cases, byMean)
	half := cases[len(cases)/2]
	middle := half.from / half.n
	away := func(s caseSums) float64 { return s.from2 - 2*middle*s.from + middle*middle*s.n }
	slices.SortFunc(cases, func(a, b caseSums) int { return cmp.Compare(away(a), away(b)) })
	kept, spread := keep(cases, spread)
	if kept == len(cases) {
		return others{}
	}
	var ref2 float64
	o := others{spread: spread, without: cases[kept:]}
	for _, s := range cases[:kept] {
		ref2 += s.ref2
		o.n, o.err2, o.maxAbs = o.n+s.n, o.err2+s.err2, max(o.maxAbs, s.maxAbs)
		if o.worst.n == 0 || s.err2/s.n > o.worst.err2/o.worst.n {
			o.worst = s
		}
	}
	o.size = math.Sqrt(ref2 / o.n)
	return o
}

// keep returns how many of the cases stay, the furthest of which are last, and their spread.
func keep(cases []caseSums, spread float64) (int, float64) {
	of, kept := spreads(cases), len(cases)
	for n := kept - 1; n >= len(cases)-len(cases)/oneOf; n-- {
		if of[n-1] > 0 && of[n-1]*inflated < spread {
			kept, spread = n, of[n-1]
		}
	}
	return kept, spread
}

// spreads returns the spread of the first case, of the first two, and so on.
func spreads(cases []caseSums) []float64 {
	of := make([]float64, len(cases))
	var n, from, from2, ref2 float64
	for i, s := range cases {
		n, from, from2, ref2 = n+s.n, from+s.from, from2+s.from2, ref2+s.ref2
		of[i] = deviation(int64(n), from, from2, ref2)
	}
	return of
}

// others are the cases that are held to their own spread, not to that of all; none where something
// else says what the spread is.
func (c *Comparison) others(spread float64) others {
	if c.options.Channels || c.broken || len(c.options.Spreads) > 0 {
		return others{}
	}
	return withoutFurthest(c.cases, spread)
}

// holdOthers holds the cases that are not furthest from the rest to their own spread, where that is far
// smaller.
func (c *Comparison) holdOthers(r *Result) {
	rest := c.others(r.Spread)
	if !(rest.spread > 0) {
		return
	}
	r.Spread, r.Spreads = rest.spread, []float64{rest.spread}
	r.SpreadSNR, r.MaxError = min(r.SpreadSNR, rest.snr(rest.spread)), max(r.MaxError, rest.maxAbs/rest.spread)
	if worst := math.Sqrt(rest.worst.err2/rest.worst.n) / rest.spread; worst > r.CaseError {
		r.CaseError, r.CaseErrorCase = worst, rest.worst.number
	}
}
