package validators

import (
	"fmt"
	"math"

	"mlpromote.dev/mlpromote/registry"
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

// UnusedLabels describes what to do about labels that decide nothing, because no limit is on accuracy. It is empty without such labels.
func (l Limits) UnusedLabels(i Interface, labels string, s Sample) string {
	m, of, ok, err := i.Accuracy(nil)
	if l.Accuracy != nil || labels == "" || !ok || err != nil {
		return ""
	}
	if of.isYesOrNo() {
		return fmt.Sprintf("labels %q decide nothing: add accuracy: {metric: auc, drop: {max: 5%%}} to limits if they are 0 and 1", labels)
	}
	drop, need := s.DefaultDrop(m, l.Confidence)
	switch {
	case drop > 0:
		return fmt.Sprintf("labels %q decide nothing: add accuracy: {metric: %s, drop: {max: %.0f%%}} to limits", labels, m.Name, 100*drop)
	case need > 0:
		return fmt.Sprintf("labels %q decide nothing, and %s prove too little for a limit on %s: about %d would", labels, registry.Count(s.Cases, "case"), m.Name, need)
	}
	return fmt.Sprintf("labels %q decide nothing: set limits.accuracy", labels)
}
