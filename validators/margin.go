package validators

import (
	"math"

	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/figure"
)

// Margin returns how much of what a limit allows a check leaves: 1 less the share that is used. It
// is 1 where nothing differs, not even in a bit, 0 at the limit, and negative beyond it. A rate uses what its worse
// bound does, unless a pass does not rest on it, and decibels are taken as the ratio of errors that they are. It is NaN where the
// figure has no value.
func Margin(c evidence.Check) float64 {
	value, limit := float64(c.Value), float64(c.LimitValue())
	row, _ := figure.Find(c.Figure)
	switch {
	case c.Identical > 0 || row.Refuted: // which bounds do not prove
	case !c.AtLeast && c.High != nil:
		value = float64(*c.High)
	case c.AtLeast && c.Low != nil:
		value = float64(*c.Low)
	}
	switch {
	case row.Unit == figure.Decibels:
		return 1 - math.Pow(10, (limit-value)/20)
	case c.AtLeast: // of 1
		return unused(1-value, 1-limit)
	}
	return unused(value, limit)
}

// unused is 1 less the share that is used of what is allowed.
func unused(used, allowed float64) float64 {
	switch {
	case used <= 0:
		return 1
	case allowed <= 0:
		return math.Inf(-1)
	}
	return 1 - used/allowed
}
