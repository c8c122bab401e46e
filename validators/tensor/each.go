package tensor

import "math"

// CaseFigures are the figures of one case of a comparison: what the figures over all cases are the
// worst, or the sum, of.
type CaseFigures struct {
	Failed int64 // elements outside the tolerances
	// MaxAbs is the largest |engine-reference|, +Inf without a finite error.
	MaxAbs float64
	Cosine float64 // as in Result.CosineMin
	// Error is the root mean square error divided by the spread of the reference, as in
	// Result.CaseError: of all values, and where cases were left out of that, for the others theirs.
	Error float64
	// Equal is the share of elements that are not equal, and Top1 that of the rows whose largest
	// element has another index; NaN without elements or rows. See Result.EqualMisses.
	Equal, Top1 float64
}

// Each returns the figures of each case, in the order in which they were added.
func (c *Comparison) Each() []CaseFigures {
	each := make([]CaseFigures, len(c.each))
	copy(each, c.each)
	spread := c.whole()
	rest := c.others(spread)
	without := make(map[int]bool, len(rest.without))
	for _, s := range rest.without {
		without[s.at] = true
	}
	for i, mean := range c.errors2 {
		of := spread
		if rest.spread > 0 && !without[i] {
			of = rest.spread
		}
		if mean > 0 {
			each[i].Error = c.caseError(mean, of)
		}
	}
	return each
}

// caseError is the root of a mean squared error, relative to a spread.
func (c *Comparison) caseError(mean, spread float64) float64 {
	if !(spread > 0 && spread <= math.MaxFloat64) {
		return math.Inf(1)
	}
	return math.Sqrt(mean) / spread
}

// note keeps the figures of one case.
func (c *Comparison) note(k *kernel, rows top1, elements int) {
	of := CaseFigures{Failed: k.failed, MaxAbs: k.maxAbs, Cosine: k.cosine(), Equal: math.NaN(), Top1: math.NaN()}
	if elements > 0 {
		of.Equal = float64(k.sums.differ) / float64(elements)
	}
	if rows.rows > 0 {
		of.Top1 = 1 - float64(rows.agreed)/float64(rows.rows)
	}
	c.each = append(c.each, of)
}
