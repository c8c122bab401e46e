package validators

import (
	"fmt"
	"math"

	"mlpromote.dev/mlpromote/validators/accuracy"
	"mlpromote.dev/mlpromote/validators/stats"
)

// The default limit on the loss on labels is twice the drop that the cases would prove for an engine without a difference, at least
// leastDrop. Above mostDrop there is none: it would allow what users notice. Bounds of smooth metrics follow from the errors of
// an engine, so that nothing is known before one runs: their limit is smoothDrop.
const (
	leastDrop  = 0.01
	mostDrop   = 0.10
	smoothDrop = 0.05
)

// DefaultDrop returns the default limit on a drop of a metric, as a fraction in whole percents. Without one it returns 0, and need is about
// how many such cases it takes; 0 if that is not known.
func (s Sample) DefaultDrop(m accuracy.Metric, confidence float64) (limit float64, need int) {
	switch {
	case m.Needs == accuracy.NeedsProgram || s.Cases < fewestForBounds:
		return 0, 0
	case m.Smooth:
		return smoothDrop, 0
	}
	least := s.LeastDrop(m, confidence)
	if limit := max(leastDrop, math.Ceil(200*least-1e-9)/100); limit <= mostDrop {
		return limit, 0
	}
	if m.Rate {
		return 0, stats.CasesFor(mostDrop/2, 1-(1-confidence)/2)
	}
	if s.Right != nil && s.Right.Rarest().Cases == 0 {
		return 0, s.Right.CasesFor(mostDrop/2, confidence)
	}
	if s.Right != nil { // of the rarest class, in the same proportion
		return 0, int(math.Ceil(float64(s.Right.CasesFor(mostDrop/2, confidence)) * float64(s.Cases) / float64(s.Right.Rarest().Cases)))
	}
	return 0, 0
}

// ProposeDrop returns a limit on the loss in a metric as YAML. output is the key of its output, "output: scores, ", or empty. If the cases
// prove too little for it, need is about how many such cases it takes. The limit is empty if that is not known.
func (s Sample) ProposeDrop(m accuracy.Metric, output string, confidence float64) (limit string, need int) {
	if m.Name == "" {
		return "", 0
	}
	drop, need := s.DefaultDrop(m, confidence)
	if drop == 0 && need == 0 {
		return "", 0
	}
	if need > 0 {
		drop = mostDrop
	}
	return fmt.Sprintf("{metric: %s, %sdrop: {max: %.0f%%}}", m.Name, output, 100*drop), need
}
