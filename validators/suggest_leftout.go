package validators

import (
	"fmt"

	"mlpromote.dev/mlpromote/registry/evidence"
)

// LeftOut is a limit that an engine exceeds, for which no figure of the engine is in a suggestion.
type LeftOut struct {
	Engine string `json:"engine"` // TARGET/VARIANT
	evidence.Reason
}

// leftOut returns the limits that an engine exceeds. Where it fails for anything else, such as NaN, it
// returns the reasons.
func leftOut(engine string, report evidence.ParityReport) []LeftOut {
	var out []LeftOut
	for _, c := range report.Checks.OfCases() {
		if c.Verdict != evidence.VerdictFail {
			continue
		}
		message, how := c.Figure, "at most"
		if c.Output != "" {
			message = fmt.Sprintf("output %s: %s", c.Output, c.Figure)
		}
		if c.AtLeast {
			how = "at least"
		}
		r := evidence.Reason{Code: ReasonLimit, Output: c.Output, Figure: c.Figure, Limit: c.LimitValue(), Value: c.Value,
			Message: fmt.Sprintf("%s is %.6g, and the limit is %s %g", message, float64(c.Value), how, float64(c.LimitValue()))}
		if c.Case != nil {
			r.Case = *c.Case
		}
		out = append(out, LeftOut{engine, r})
	}
	if len(out) == 0 && report.Verdict == evidence.VerdictFail {
		for _, r := range report.Reasons {
			out = append(out, LeftOut{engine, r})
		}
	}
	return out
}
