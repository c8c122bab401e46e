package validators

import (
	"math"

	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/figure"
	"mlpromote.dev/mlpromote/validators/stats"
)

// The functions of this file settle a check of counts. A judge calls them with what was measured, and who
// judges a report again with what the report has.

// bounded returns the value and the bounds of a check: of a share of the cases, of a drop, or of the
// accuracy over the reference's, which follows from a.
func bounded(c evidence.Check, a *evidence.Accuracy, confidence float64) (value, low, high float64) {
	misses, cases := float64(*c.Misses), float64(max(c.Cases, 1))
	switch {
	case c.Figure == figure.Relative:
		return relativeRate(*a, confidence)
	case isDrop(c):
		won := float64(*c.Won)
		low, high = stats.PairedDrop(int(math.Ceil(misses)), int(math.Floor(won)), c.Cases, confidence)
		return (misses - won) / cases, low, high
	}
	return 1 - misses/cases, 1 - stats.UpperRate(misses, c.Cases, confidence), 1 - stats.LowerRate(misses, c.Cases, confidence)
}

// decide returns the verdict on a check with bounds: its limit holds if the worse bound does, and is
// exceeded if the better one does not hold. Between them a limit that has to be refuted holds. A share without a value fails.
func decide(c evidence.Check) evidence.Verdict {
	worse, better := float64(*c.High), float64(*c.Low)
	if c.AtLeast {
		worse, better = better, worse
	}
	row, _ := figure.Find(c.Figure)
	switch row.AtLeast = c.AtLeast; {
	case math.IsNaN(float64(*c.Misses)):
		return evidence.VerdictFail
	case row.Keeps(worse, float64(c.LimitValue())):
		return evidence.VerdictPass
	case !row.Keeps(better, float64(c.LimitValue())):
		return evidence.VerdictFail
	case row.Refuted:
		return evidence.VerdictPass
	}
	return evidence.VerdictUndecided
}

// settle settles a check of counts.
func (j *judgement) settle(c *evidence.Check, a *evidence.Accuracy) (low, high float64) {
	value, low, high := bounded(*c, a, j.confidence)
	c.Value, c.Low, c.High = evidence.Figure(value), figureOf(low), figureOf(high)
	c.Verdict = decide(*c)
	j.sameBits(c, *c.Misses != 0 || c.Won != nil && *c.Won != 0, 0)
	return low, high
}

// isDrop reports whether a check has the answers that only one of two engines has right.
func isDrop(c evidence.Check) bool { return c.Figure == figure.Drop || c.Figure == figure.Regression }
