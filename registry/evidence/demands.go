package evidence

import (
	"math"
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/registry/figure"
)

// Keeps reports whether a report has a limit on the engine as a whole, at least as strict as one, that held.
func (r Report) Keeps(name string, atLeast bool, limit Figure) bool {
	return slices.ContainsFunc(r.Checks.OfCases(), func(c Check) bool {
		return c.Figure == name && c.Output == "" && c.Slice == "" && c.AtLeast == atLeast && c.Verdict == VerdictPass &&
			c.Limit != nil && stricter(atLeast, *c.Limit, limit)
	})
}

// answers reports whether the values of an output are answers, right or wrong: limits on them are rates.
func (o OutputFigures) answers() bool {
	return o.DType == "bool" || slices.Contains([]string{"class", "label", "scores", "probability", "tokens"}, o.Kind) && !strings.Contains(o.DType, "float")
}

// Bound reports whether a ceiling on a figure is one for the output. It goes by what the output is, and not by the limits that it has: a
// builder could leave those out.
func (o OutputFigures) Bound(row figure.Row) bool {
	if o.Kind == "detections" || row.Scope == figure.Detected {
		return o.Kind == "detections" && row.Scope == figure.Detected
	}
	switch ranks := slices.Contains([]string{"scores", "probability", "tokens", ""}, o.Kind); {
	case o.answers() || row.Scope == figure.Classes:
		return o.answers() && row.Scope == figure.Classes
	case row.Sometimes:
		return !math.IsNaN(float64(o.Figure(row.Name)))
	case row.Scope == figure.Ranks:
		return ranks && !(o.Kind == "probability" && o.Top1 == nil) // one number has no rows
	case row.Scope == figure.FewValues:
		return o.Few && !ranks
	}
	return true
}

func stricter(atLeast bool, limit, than Figure) bool {
	if atLeast {
		return limit >= than
	}
	return limit <= than
}
