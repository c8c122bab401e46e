package tensor

import "math"

// moments are those of one case, or of one channel of it, about its own mean: so cases are put together without losing
// the digits of those that are near each other.
type moments struct {
	number, at           int // of the case, and its place among all
	n                    float64
	mean, deviation, rms float64 // of the reference's values
	rmse, maxAbs         float64 // of the errors
	copied               bool    // the case says no more than another
}

// from2 is the sum of the squares of the values less another value than their mean.
func (m moments) from2(shift float64) float64 {
	return m.n * (m.deviation*m.deviation + (m.mean-shift)*(m.mean-shift))
}

// moments sets what the pairs of a case with a finite difference give.
func (k *kernel) moments(of *CaseFigures) {
	if k.sums.n > 0 {
		n := float64(k.sums.n)
		of.Elements, of.Mean, of.Deviation = k.sums.n, k.shift+k.from/n, math.Sqrt(variance(n, k.from, k.from2))
		of.RMS, of.RMSE = math.Sqrt(k.sums.ref2/n), math.Sqrt(k.sums.err2/n)
	}
	if k.broken {
		of.RMSE = math.Inf(1)
	}
}

// poolSums are sums over cases, of the values less one value.
type poolSums struct{ n, from, from2, ref2, err2, maxAbs float64 }

func (s *poolSums) add(m moments, shift float64) {
	s.n += m.n
	s.from += m.n * (m.mean - shift)
	s.from2 += m.from2(shift)
	s.ref2 += m.n * m.rms * m.rms
	if m.n > 0 { // without elements there may be an infinite error
		s.err2 += m.n * m.rmse * m.rmse
	}
	s.maxAbs = max(s.maxAbs, m.maxAbs)
}

func (s *poolSums) spread() float64 { return deviation(s.n, s.from, s.from2, s.ref2) }

// A pool is the cases of an output, put together.
type pool struct {
	cases  []moments
	total  poolSums  // of all but copies; maxAbs of all
	least  []float64 // Options.Spreads
	entire bool      // nothing is left out
}

func newPool(each []CaseFigures, numbers []int, options Options) *pool {
	p := &pool{cases: make([]moments, len(each)), least: options.Spreads, entire: options.Channels || options.Bounded}
	shift, shifted := 0.0, false
	for i, of := range each {
		p.cases[i] = moments{at: i, number: i, n: float64(of.Elements), mean: of.Mean, deviation: of.Deviation, rms: of.RMS, rmse: of.RMSE, maxAbs: of.MaxAbs}
		if numbers != nil {
			p.cases[i].number = numbers[i]
		}
		if math.IsNaN(of.Equal) { // a copy of another case, or one that says nothing: its values are no more of the output's
			p.total.maxAbs = max(p.total.maxAbs, of.MaxAbs)
			p.cases[i].n, p.cases[i].copied = 0, true
			continue
		}
		if !shifted && of.Elements > 0 {
			shift, shifted = of.Mean, true
		}
		p.total.add(p.cases[i], shift)
	}
	return p
}

func (c *Comparison) pool() *pool { return newPool(c.each, c.numbers, c.options) }

// Pool computes Spread, SpreadSNR, MaxError, CaseError and FarCases of a [Result] again from the figures of each case, where the errors
// are relative to one spread, without Options.Channels and Options.Spreads; bounded is Options.Bounded. It reports false if the figures do not say enough for it:
// the optional ones are not in a file that would be too large.
func Pool(each []CaseFigures, bounded bool) (Result, bool) {
	for _, of := range each {
		if math.IsNaN(of.RMSE) {
			return Result{}, false
		}
	}
	var r Result
	p := newPool(each, nil, Options{Bounded: bounded})
	p.set(&r)
	found := make(map[int]bool)
	far(p.cases, p.whole(), func(at int) { found[at] = true })
	r.FarCases = countable(each, found)
	return r, true
}

// set sets the figures that are relative to one spread.
func (p *pool) set(r *Result) {
	r.Spread = p.whole()
	r.SpreadSNR, r.MaxError = toSpread(r.Spread, p.total.err2, p.total.n, p.total.maxAbs)
	worst, largest := moments{number: -1}, moments{number: -1}
	for _, m := range p.cases {
		if m.rmse > worst.rmse {
			worst = m
		}
		if m.maxAbs > largest.maxAbs {
			largest = m
		}
	}
	r.MaxErrorCase = largest.number
	if r.CaseErrorCase = worst.number; worst.rmse > 0 {
		r.CaseError = relative(worst.rmse, r.Spread)
	}
	if rest := p.others(r.Spread); rest.spread > 0 {
		r.Spread = rest.spread
		r.SpreadSNR = min(r.SpreadSNR, rest.snr(rest.spread))
		if largest := rest.maxAbs / rest.spread; largest > r.MaxError {
			r.MaxError, r.MaxErrorCase = largest, rest.largest.number
		}
		if worst := rest.worst.rmse / rest.spread; worst > r.CaseError {
			r.CaseError, r.CaseErrorCase = worst, rest.worst.number
		}
	}
	r.Spreads = []float64{r.Spread}
}

// whole is the spread of all values.
func (p *pool) whole() float64 {
	spread := p.total.spread()
	if len(p.least) == 1 {
		spread = max(spread, p.least[0])
	}
	return spread
}

// remainingCases are the cases that are held to their own spread, not to that of all; none where something
// else says what the spread is.
func (p *pool) others(spread float64) remainingCases {
	if p.entire || len(p.least) > 0 || math.IsInf(p.total.maxAbs, 0) {
		return remainingCases{}
	}
	return withoutFurthest(p.cases, spread)
}

// histogram counts cases by their errors relative to a spread.
func (p *pool) histogram(spread float64) (counts [Decades]int) {
	for _, m := range p.cases {
		at, e := 0, 0.0
		if m.rmse > 0 {
			e = m.rmse / spread // +Inf where the spread is 0
		}
		for at < len(decades) && !(e < decades[at]) {
			at++
		}
		counts[at]++
	}
	return counts
}
