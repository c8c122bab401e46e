package validators

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/registry"
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

// Tightest returns the check of a limit on the cases with the least margin; false if there is none.
func Tightest(checks evidence.Checks) (evidence.Check, bool) {
	all := checks.OfCases()
	if len(all) == 0 {
		return evidence.Check{}, false
	}
	return slices.MinFunc(all, func(a, b evidence.Check) int { return cmp.Compare(Margin(a), Margin(b)) }), true
}

// BriefText describes a check on one line: the figure and its output, the value or the bound that counts, and the limit.
func BriefText(c evidence.Check, metric string) string {
	text := FigureWord(c, metric)
	if c.Output == "" && metric == MetricTop1 { // beside a column of that name
		text = strings.Replace(text, "accuracy", metric, 1)
	}
	if c.Output != "" {
		text += " of " + registry.PlainText(c.Output)
	}
	row, _ := figure.Find(c.Figure)
	switch {
	case c.Identical > 0 || row.Refuted || c.AtLeast && c.Low == nil || !c.AtLeast && c.High == nil:
		text += " " + ValueText(c, float64(c.Value))
	case c.AtLeast:
		text += " from " + ValueText(c, float64(*c.Low))
	default:
		text += " up to " + ValueText(c, float64(*c.High))
	}
	return text + ", " + LimitText(c)
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
