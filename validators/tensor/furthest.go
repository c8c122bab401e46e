package tensor

import (
	"cmp"
	"math"
	"slices"
)

// A case whose values are far from those of all others must not make the spread so large that errors
// of the others look small. So where the others have less than half of the spread, they are held to
// their own. One case of a hundred may be left out, and one of twenty.
const (
	fewestCases = 20
	oneOf       = 100
	inflated    = 2
)

// maxUnits is how many channels may have units of their own for that: more would take much memory.
const maxUnits = 16

// caseSums are those of one case, or of one channel of it.
type caseSums struct {
	number                             int // of the case
	n, from, from2, ref2, err2, maxAbs float64
}

// others is what the cases have that are not furthest from the rest; the zero value is none.
type others struct {
	spread, n, err2, maxAbs float64
	size                    float64  // root mean square of the values
	worst                   caseSums // with the largest mean squared error
}

// snr is in dB, relative to a spread.
func (o others) snr(spread float64) float64 {
	if o.err2 == 0 {
		return math.Inf(1)
	}
	return 10 * math.Log10(spread*spread*o.n/o.err2)
}

// withoutFurthest leaves out the cases that are furthest from the middle one. It returns nothing if
// the others have at least half of the spread of all, or none.
func withoutFurthest(all []caseSums, spread float64) others {
	cases := slices.DeleteFunc(slices.Clone(all), func(s caseSums) bool { return s.n == 0 })
	if len(cases) < fewestCases {
		return others{}
	}
	byMean := func(a, b caseSums) int { return cmp.Compare(a.from/a.n, b.from/b.n) }
	slices.SortFunc(cases, byMean)
	half := cases[len(cases)/2]
	middle := half.from / half.n
	away := func(s caseSums) float64 { return s.from2 - 2*middle*s.from + middle*middle*s.n }
	slices.SortFunc(cases, func(a, b caseSums) int { return cmp.Compare(away(a), away(b)) })
	var from, from2, ref2 float64
	var o others
	for _, s := range cases[:len(cases)-max(len(cases)/oneOf, 1)] {
		from, from2, ref2 = from+s.from, from2+s.from2, ref2+s.ref2
		o.n, o.err2, o.maxAbs = o.n+s.n, o.err2+s.err2, max(o.maxAbs, s.maxAbs)
		if o.worst.n == 0 || s.err2/s.n > o.worst.err2/o.worst.n {
			o.worst = s
		}
	}
	if o.spread = deviation(int64(o.n), from, from2, ref2); !(o.spread*inflated < spread) {
		return others{}
	}
	o.size = math.Sqrt(ref2 / o.n)
	return o
}

// holdOthers holds the cases that are not furthest from the rest to their own spread, where that is far
// smaller.
func (c *Comparison) holdOthers(r *Result) {
	rest := withoutFurthest(c.cases, r.Spread)
	if !(rest.spread > 0) {
		return
	}
	r.Spread, r.Spreads = rest.spread, []float64{rest.spread}
	r.SpreadSNR, r.MaxError = min(r.SpreadSNR, rest.snr(rest.spread)), max(r.MaxError, rest.maxAbs/rest.spread)
	if worst := math.Sqrt(rest.worst.err2/rest.worst.n) / rest.spread; worst > r.CaseError {
		r.CaseError, r.CaseErrorCase = worst, rest.worst.number
	}
}
