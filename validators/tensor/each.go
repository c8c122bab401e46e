package tensor

import "math"

// CaseFigures are the figures of one case of a comparison. The figures over all cases are the worst,
// or the sum, of them.
type CaseFigures struct {
	Failed int64 // elements outside the tolerances
	// MaxAbs is the largest |engine-reference|, +Inf without a finite error.
	MaxAbs float64
	Cosine float64 // as in Result.CosineMin
	// Error is the root mean square error divided by the spread of the reference, as in
	// Result.CaseError: of all values, and where cases were left out of that, for the others theirs.
	Error float64
	// Equal is the share of elements that are not equal, and Top1 the share of rows in which the
	// largest element has another index; NaN without elements or rows that count. See Result.EqualMisses.
	Equal, Top1 float64
	// Elements counts the pairs with a finite difference. Mean, Deviation and RMS are of the reference's values in these:
	// mean, standard deviation and root mean square; values of 1e30 and above, which stand for infinity, count for the
	// mean and the deviation as the first value of the case does. RMSE is the root mean square error, +Inf without a finite
	// error. [Pool] puts them together. RMSE is NaN in files of versions that did not write them.
	Elements                   int64
	Mean, Deviation, RMS, RMSE float64
}

// Each returns the figures of each case, in the order in which they were added.
func (c *Comparison) Each() []CaseFigures {
	each := make([]CaseFigures, len(c.each))
	copy(each, c.each)
	p := c.pool()
	spread := p.whole()
	rest := p.others(spread)
	without := make(map[int]bool, len(rest.without))
	for _, m := range rest.without {
		without[m.at] = true
	}
	for i := range each {
		of := spread
		if rest.spread > 0 && !without[i] {
			of = rest.spread
		}
		if each[i].RMSE > 0 {
			each[i].Error = relative(each[i].RMSE, of)
		}
	}
	return each
}

// relative is an error divided by a spread: +Inf where that is no number to divide by.
func relative(e, spread float64) float64 {
	if !(spread > 0 && spread <= math.MaxFloat64) {
		return math.Inf(1)
	}
	return e / spread
}

// note keeps the figures of one case.
func (c *Comparison) note(number int, k *kernel, rows top1, elements int) {
	of := CaseFigures{Failed: k.failed, MaxAbs: k.maxAbs, Cosine: k.cosine(), Equal: math.NaN(), Top1: math.NaN()}
	if k.says() {
		of.Equal, of.Top1 = float64(k.sums.differ)/float64(elements), rows.misses()
	}
	k.moments(&of)
	c.each, c.numbers = append(c.each, of), append(c.numbers, number)
}
