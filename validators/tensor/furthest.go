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

// caseSums are those of a channel of one case: from and from2 of the reference's values less the channel's shift.
type caseSums struct{ n, from, from2, ref2, err2, maxAbs float64 }

// moments are those about the mean of the values.
func (s caseSums) moments(shift float64) moments {
	if s.n == 0 {
		return moments{}
	}
	return moments{n: s.n, mean: shift + s.from/s.n, deviation: math.Sqrt(variance(s.n, s.from, s.from2)),
		rms: math.Sqrt(s.ref2 / s.n), rmse: math.Sqrt(s.err2 / s.n), maxAbs: s.maxAbs}
}

// remainingCases is what the cases have that are not furthest from the rest; the zero value is none.
type remainingCases struct {
	spread, n, err2, maxAbs float64
	size                    float64   // root mean square of the values
	worst, largest          moments   // with the largest error of a case, and of an element
	without                 []moments // that were left out
}

// snr is in dB, relative to a spread.
func (o remainingCases) snr(spread float64) float64 {
	if o.err2 == 0 {
		return math.Inf(1)
	}
	return 10 * math.Log10(spread*spread*o.n/o.err2)
}

// withoutFurthest leaves out the cases that are furthest from the middle one, as long as the others
// have less than half of the spread that was left, but some. It returns nothing if it leaves out none.
func withoutFurthest(all []moments, spread float64) remainingCases {
	cases := slices.DeleteFunc(slices.Clone(all), func(m moments) bool { return m.n == 0 })
	if len(cases) < oneOf {
		return remainingCases{}
	}
	slices.SortFunc(cases, func(a, b moments) int { return cmp.Compare(a.mean, b.mean) })
	middle := cases[len(cases)/2].mean
	slices.SortFunc(cases, func(a, b moments) int { return cmp.Compare(a.from2(middle), b.from2(middle)) })
	kept, spread := keep(cases, middle, spread)
	if kept == len(cases) {
		return remainingCases{}
	}
	o := remainingCases{spread: spread, without: cases[kept:]}
	var total poolSums
	for _, m := range cases[:kept] {
		total.add(m, middle)
		if o.worst.n == 0 || m.rmse > o.worst.rmse {
			o.worst = m
		}
		if o.largest.n == 0 || m.maxAbs > o.largest.maxAbs {
			o.largest = m
		}
	}
	o.n, o.err2, o.maxAbs, o.size = total.n, total.err2, total.maxAbs, math.Sqrt(total.ref2/total.n)
	return o
}

// keep returns how many of the cases stay, the furthest of which are last, and their spread.
func keep(cases []moments, middle, spread float64) (int, float64) {
	of, kept := spreads(cases, middle), len(cases)
	for n := kept - 1; n >= len(cases)-len(cases)/oneOf; n-- {
		if of[n-1] > 0 && of[n-1]*inflated < spread {
			kept, spread = n, of[n-1]
		}
	}
	return kept, spread
}

// spreads returns the spread of the first case, of the first two, and so on.
func spreads(cases []moments, middle float64) []float64 {
	of := make([]float64, len(cases))
	var total poolSums
	for i, m := range cases {
		total.add(m, middle)
		of[i] = total.spread()
	}
	return of
}
