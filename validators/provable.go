package validators

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"sort"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/figure"
	"mlpromote.dev/mlpromote/validators/accuracy"
	"mlpromote.dev/mlpromote/validators/stats"
)

// Sample is what is known of cases before an engine runs.
type Sample struct {
	Cases  int  // without copies
	Floats bool // the model has float outputs, in which an engine can have the bits of the reference
	// Right are the figures if the reference model and an engine give the labels: see [accuracy.Counter.AddRight]. Nil where labels do not say so
	// much; then no metric is taken to prove more than a rate does.
	Right *accuracy.Figures
}

// unproven is a limit that no engine proves with the cases, or only one that has the bits of the reference.
type unproven struct {
	output string // the output that it limits, with its precision; empty for the model as a whole
	reason string
	bits   bool
}

// Provable checks that an engine could keep each limit with these cases. Errors: CodeInvalid, which says what the cases prove
// and how many it takes.
func (l Limits) Provable(s Sample) error {
	if s.Cases < l.MinCases {
		return registry.Errorf(registry.CodeInvalid, "limits: min_cases is %d, and there are %s without copies: no engine can pass; add cases, or lower min_cases",
			l.MinCases, registry.Count(s.Cases, "case"))
	}
	for _, u := range l.unproven(s) {
		if !u.bits {
			return u.err()
		}
	}
	return nil
}

// Unproven says of the first limit that only an engine with the bits of the reference keeps how many cases it takes for others; empty for none.
func (l Limits) Unproven(s Sample) string {
	for _, u := range l.unproven(s) {
		if u.bits {
			return u.String() + bitsOnly
		}
	}
	return ""
}

// bitsOnly is the consequence of a limit that only an engine with the bits of the reference keeps.
const bitsOnly = "; an engine passes only if no bit of its float outputs differs"

func (u unproven) String() string {
	if u.output != "" {
		return "limits of " + u.output + ": " + u.reason
	}
	return u.reason
}

func (u unproven) err() error {
	if u.output != "" {
		return registry.Errorf(registry.CodeInvalid, "%s", u)
	}
	return registry.Errorf(registry.CodeInvalid, "limits: %s", u)
}

// unproven lists the limits that an engine does not prove which differs in no answer. It decides as [Limits.Judge] does.
func (l Limits) unproven(s Sample) (all []unproven) {
	bits := s.Floats && s.Cases >= FewestIdentical
	add := func(u unproven) {
		if u.reason != "" {
			all = append(all, u)
		}
	}
	for _, precision := range slices.Sorted(maps.Keys(l.Precisions)) {
		outputs := l.Precisions[precision].Outputs
		for _, name := range slices.Sorted(maps.Keys(outputs)) {
			output := fmt.Sprintf("%s, output %q", precision, name)
			for _, row := range figure.OfOutputs() {
				if limit, there := outputs[name].Bound(row); there && row.Rate {
					add(unproven{output, l.unprovenRate(row.Key, &AtLeast{limit}, s.Cases), bits})
				}
			}
		}
	}
	if l.Accuracy != nil {
		l.unprovenAccuracy(*l.Accuracy, s, bits, add)
	}
	return all
}

// fewestForBounds is how many cases the bounds of a metric that is no rate need, see [stats.MeanBounds].
const fewestForBounds = 8

// unprovenAccuracy adds the limits on accuracy. What a bootstrap proves depends on the outputs. Nor are figures of labels those of the
// reference model, so that nothing is refused by them.
func (l Limits) unprovenAccuracy(a AccuracyLimit, s Sample, bits bool, add func(unproven)) {
	overall := func(reason string, bits bool) { add(unproven{reason: reason, bits: bits}) }
	m, err := accuracy.Find(a.Metric)
	switch {
	case err != nil:
		overall(err.Error(), false)
		return
	case !m.Rate && s.Cases < fewestForBounds:
		overall(fmt.Sprintf("%s cannot be bounded by %s: it takes at least %d, and more to be near",
			m.Name, registry.Count(s.Cases, "case"), fewestForBounds), false)
		return
	case m.Smooth || m.Needs == accuracy.NeedsProgram: // whose scale is not known
		return
	}
	overall(l.unprovenRate("accuracy", a.Min, s.Cases), false)
	if s.Right != nil {
		overall(l.unprovenLoss("a drop", m, a.Drop, s), true)
		overall(l.unprovenLoss("a regression", m, a.Regression, s), true)
		if a.Relative != nil {
			overall(l.unprovenLoss("a drop", m, &AtMost{1 - a.Relative.Min}, s), true)
		}
		return
	}
	overall(l.unprovenDrop("a drop of accuracy", a.Drop, s.Cases), bits)
	overall(l.unprovenDrop("a regression of accuracy", a.Regression, s.Cases), false)
	overall(l.unprovenRelative(a.Relative, s.Cases), bits)
}

// UnprovenSlice says of a slice of such cases which of its limits it does not prove; empty for none.
func (l Limits) UnprovenSlice(s Sample) string {
	if l.Accuracy == nil || l.Accuracy.Slices == nil {
		return ""
	}
	limit := l.Accuracy.ofSlice()
	if limit.Min == nil && limit.Max == nil && limit.Drop == nil {
		return ""
	}
	text := ""
	l.unprovenAccuracy(*limit, s, s.Floats, func(u unproven) {
		switch {
		case u.reason == "" || text != "":
		case u.bits && s.Floats:
			text = u.String() + bitsOnly
		default:
			text = u.String()
		}
	})
	return text
}

// LeastDrop returns the smallest limit on a drop of a metric that so many cases prove of an engine that differs in no case: what a default is
// made from. It is 1 where that is not known before an engine runs.
func (s Sample) LeastDrop(m accuracy.Metric, confidence float64) float64 {
	switch {
	case s.Right != nil:
		return min(s.Right.Drop(confidence).High, 1)
	case m.Rate:
		_, high := stats.PairedDrop(0, 0, s.Cases, confidence)
		return high
	}
	return 1
}

// unprovenLoss returns why no engine proves a limit on the loss in a metric other than a rate, by the bound that verify uses, or "".
func (l Limits) unprovenLoss(what string, m accuracy.Metric, allowed *AtMost, s Sample) string {
	if allowed == nil {
		return ""
	}
	high := s.LeastDrop(m, l.Confidence)
	if high <= allowed.Max {
		return ""
	}
	class := s.Right.Rarest()
	have, of := "", "of these"
	if class.Cases > 0 {
		have, of = fmt.Sprintf(", %d of class %d,", class.Cases, class.Number), fmt.Sprintf("of class %d", class.Number)
	}
	takes := ""
	if need := s.Right.CasesFor(allowed.Max, l.Confidence); need > 0 && need < math.MaxInt32 {
		takes = fmt.Sprintf(", and it takes about %d %s", need, of)
	}
	return fmt.Sprintf("%s of %s of at most %s cannot be proven: %s without a difference%s prove %s with %s confidence%s; use more cases, or allow more",
		what, m.Name, share(allowed.Max), registry.Count(s.Cases, "case"), have, share(high), share(l.Confidence), takes)
}

// unprovenRelative returns why no engine proves a limit on the accuracy over that of the reference, or "".
func (l Limits) unprovenRelative(limit *AtLeast, cases int) string {
	if limit == nil {
		return ""
	}
	proves := func(cases int) float64 {
		low, _ := stats.PairedRatio(0, 0, float64(cases), cases, l.Confidence)
		return low
	}
	low := proves(cases)
	if low >= limit.Min {
		return ""
	}
	if limit.Min >= 1 {
		return fmt.Sprintf("accuracy.relative of %s cannot be proven by any number of cases: ask for less, such as %s",
			share(limit.Min), share(math.Floor(low*1000)/1000))
	}
	need := cases + sort.Search(1<<31-cases, func(more int) bool { return proves(cases+more) >= limit.Min })
	return fmt.Sprintf("accuracy.relative of %s cannot be proven: %s without a miss prove %s with %s confidence, and it takes %d; use more cases, or ask for less",
		share(limit.Min), registry.Count(cases, "case"), proven(low), share(l.Confidence), need)
}

// Proof is what a number of cases can prove at a confidence if the engine gives the right answer
// in all of them.
type Proof struct {
	Cases      int     `json:"cases"`
	Confidence float64 `json:"confidence"`
	Rate       float64 `json:"rate"` // the highest limit on a rate
	// Drop is the lowest limit on a drop of accuracy; 0 without such a limit, and if the metric is no rate, since more than the number of cases counts.
	Drop float64 `json:"drop,omitempty"`
}

func isOfRate(metric string) bool {
	m, err := accuracy.Find(metric)
	return err == nil && m.Rate
}

// Proof says what a number of cases can prove by these limits; nil without cases.
func (l Limits) Proof(cases int) *Proof {
	if cases < 1 {
		return nil
	}
	p := Proof{Cases: cases, Confidence: l.Confidence, Rate: 1 - stats.UpperRate(0, cases, l.Confidence)}
	if l.Accuracy != nil && isOfRate(l.Accuracy.Metric) {
		_, p.Drop = stats.PairedDrop(0, 0, cases, l.Confidence)
	}
	return &p
}

// unprovenRate returns why no engine proves a limit on a rate, or "".
func (l Limits) unprovenRate(what string, limit *AtLeast, cases int) string {
	if limit == nil || limit.Min == 0 {
		return ""
	}
	low := 1 - stats.UpperRate(0, cases, l.Confidence)
	if low >= limit.Min {
		return ""
	}
	if limit.Min >= 1 {
		return fmt.Sprintf("%s of %s cannot be proven by any number of cases: ask for less, such as %s", what, share(limit.Min), share(math.Floor(low*100)/100))
	}
	return fmt.Sprintf("%s of %s cannot be proven: %s without a miss prove %s with %s confidence, and it takes %d; use more cases, or ask for less",
		what, share(limit.Min), registry.Count(cases, "case"), proven(low), share(l.Confidence), stats.CasesFor(1-limit.Min, l.Confidence))
}

// unprovenDrop returns why no engine proves a limit on a drop of accuracy, or "".
func (l Limits) unprovenDrop(what string, allowed *AtMost, cases int) string {
	if allowed == nil {
		return ""
	}
	limit := allowed.Max
	_, high := stats.PairedDrop(0, 0, cases, l.Confidence)
	if high <= limit {
		return ""
	}
	if limit <= 0 {
		return fmt.Sprintf("%s of %s cannot be proven by any number of cases: allow more, such as %s", what, share(limit), share(math.Ceil(high*1000)/1000))
	}
	return fmt.Sprintf("%s of at most %s cannot be proven: %s without a difference prove %s with %s confidence, and it takes %d; use more cases, or allow more",
		what, share(limit), registry.Count(cases, "case"), share(high), share(l.Confidence), casesForDrop(limit, l.Confidence))
}

// casesForDrop returns how many cases without a difference prove a drop.
func casesForDrop(limit, confidence float64) int {
	low, high := 0, 1<<31
	for high-low > 1 {
		middle := low + (high-low)/2
		if _, bound := stats.PairedDrop(0, 0, middle, confidence); bound <= limit {
			high = middle
		} else {
			low = middle
		}
	}
	return high
}
