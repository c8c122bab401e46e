//go:build cgo && linux

package architectures

import (
	"fmt"
	"strings"

	"mlpromote.dev/mlpromote/registry/evidence"
)

// within holds the figures of a plain load against what the engine was held to, and says which exceed
// it. Limits on single channels and on rates are left to verify: it saw the same cases.
func within(figures map[string]plainFigures, checks []evidence.Check) string {
	var exceeded []string
	held := 0
	for _, c := range checks {
		f, ok := figures[c.Output]
		if !ok {
			continue
		}
		value, known := map[string]float64{"snrDb": f.SNRdB, "maxError": f.MaxError, "caseError": f.CaseError}[c.Figure]
		if !known {
			continue
		}
		held++
		limit := float64(c.LimitValue())
		if c.AtLeast && value >= limit || !c.AtLeast && value <= limit {
			continue
		}
		exceeded = append(exceeded, fmt.Sprintf("%s: %s is %.3g, the limit %.3g", c.Output, c.Figure, value, limit))
	}
	if held == 0 {
		return "the report has no limit to hold the outputs to"
	}
	return strings.Join(exceeded, "; ")
}
