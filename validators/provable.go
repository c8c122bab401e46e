package validators

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"sort"
	"strings"

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
	err  error
	bits bool
}

// Provable checks that an engine could keep each limit with these cases. Errors: CodeInvalid, which says what the cases prove
// and how many it takes.
func (l Limits) Provable(s Sample) error {
	for _, u := range l.unproven(s) {
		if !u.bits {
			return u.err
		}
	}
	return nil
}

// Unproven says of the first limit that only an engine with the bits of the reference keeps how many cases it takes for others; empty for none.
func (l Limits) Unproven(s Sample) string {
	for _, u := range l.unproven(s) {
		if u.bits {
			return u.text()
		}
	}
	return ""
}

func (u unproven) text() string {
	return strings.TrimPrefix(u.err.Error(), "limits: ") + "; an engine passes only if no bit of its float outputs differs"
}

// unproven lists the limits that an engine does not prove which differs in no answer. It decides as [Limits.Judge] does.
func (l Limits) unproven(s Sample) (all []unproven) {
	bits := s.Floats && s.Cases >= FewestIdentical
	add := func(err error, bits bool) {
		if err != nil {
			all = append(all, unproven{err, bits})
		}
	}
	for _, precision := range slices.Sorted(maps.Keys(l.Precisions)) {
		outputs := l.Precisions[precision].Outputs
		for _, name := range slices.Sorted(maps.Keys(outputs)) {
			what := fmt.Sprintf("limits of %s, output %q: ", precision, name)
			for _, row := range figure.OfOutputs() {
				if limit, there := outputs[name].Bound(row); there && row.Rate {
					add(l.provable(what+row.Key, &AtLeast{limit}, s.Cases), bits)
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
func (l Limits) unprovenAccuracy(a AccuracyLimit, s Sample, bits bool, add func(err error, bits bool)) {
	m, err := accuracy.Find(a.Metric)
	switch {
	case err != nil:
		add(err, false)
		return
	case !m.Rate && s.Cases < fewestForBounds:
		add(registry.Errorf(registry.CodeInvalid, "limits: %s cannot be bounded by %s: it takes at least %d, and more to be near",
			m.Name, registry.Count(s.Cases, "case"), fewestForBounds), false)
		return
	case m.Smooth || m.Needs == accuracy.NeedsProgram: // whose scale is not known
		return
	}
	add(l.provable("limits: accuracy", a.Min, s.Cases), false)
	if s.Right != nil {
		add(l.provableLoss("a drop", m, a.Drop, s), true)
		add(l.provableLoss("a regression", m, a.Regression, s), true)
		if a.Relative != nil {
			add(l.provableLoss("a drop", m, &AtMost{1 - a.Relative.Min}, s), true)
		}
		return
	}
	add(l.provableDrop("a drop of accuracy", a.Drop, s.Cases), bits)
	add(l.provableDrop("a regression of accuracy", a.Regression, s.Cases), false)
	add(l.provableRelative(a.Relative, s.Cases), bits)
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
	l.unprovenAccuracy(*limit, s, s.Floats, func(err error, bits bool) {
		switch u := (unproven{err, bits}); {
		case err == nil || text != "":
		case bits && s.Floats:
			text = u.text()
		default:
			text = strings.TrimPrefix(err.Error(), "limits: ")
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

// provableLoss checks a limit on what is lost of a metric that is no rate, by the bound that verify uses.
func (l Limits) provableLoss(what string, m accuracy.Metric, allowed *AtMost, s Sample) error {
	if allowed == nil {
		return nil
	}
	high := s.LeastDrop(m, l.Confidence)
	if high <= allowed.Max {
		return nil
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
	return registry.Errorf(registry.CodeInvalid,
		"limits: %s of %s of at most %s cannot be proven: %s without a difference%s prove %s with %s confidence%s; use more cases, or allow more",
		what, m.Name, share(allowed.Max), registry.Count(s.Cases, "case"), have, share(high), share(l.Confidence), takes)
}

// provableRelative checks a limit on the accuracy over that of the reference.
func (l Limits) provableRelative(limit *AtLeast, cases int) error {
	if limit == nil {
		return nil
	}
	proves := func(cases int) float64 {
		low, _ := stats.PairedRatio(0, 0, float64(cases), cases, l.Confidence)
		return low
	}
	low := proves(cases)
	if low >= limit.Min {
		return nil
	}
	if limit.Min >= 1 {
		return registry.Errorf(registry.CodeInvalid,
			"limits: accuracy.relative of %s cannot be proven by any number of cases: ask for less, such as %s",
			share(limit.Min), share(math.Floor(low*1000)/1000))
	}
	need := cases + sort.Search(1<<31-cases, func(more int) bool { return proves(cases+more) >= limit.Min })
	return registry.Errorf(registry.CodeInvalid,
		"limits: accuracy.relative of %s cannot be proven: %s without a miss prove %s with %s confidence, and it takes %d; use more cases, or ask for less",
		share(limit.Min), registry.Count(cases, "case"), proven(low), share(l.Confidence), need)
}

// Proof is what a number of cases can prove at a confidence if the engine gives the right answer
// in all of them.
type Proof struct {
	Cases      int     `json:"cases"`
	Confidence float64 `json:"confidence"`
	Rate       float64 `json:"rate"` // the highest limit on a rate
	// Drop is the lowest limit on a drop of accuracy; 0 where the metric is no rate, since more than the number of cases counts.
	Drop float64 `json:"drop,omitempty"`
	// Next is the next higher of the usual limits on rates, and NextCases how many cases it takes.
	Next      float64 `json:"next"`
	NextCases int     `json:"nextCases"`
}

func isOfRate(metric string) bool {
	m, err := accuracy.Find(metric)
	return err == nil && m.Rate
}

// usualRates are limits on rates that people ask for.
var usualRates = []float64{0.9, 0.95, 0.98, 0.99, 0.995, 0.999, 0.9999, 0.99999}

// Proof says what a number of cases can prove by these limits; nil without cases.
func (l Limits) Proof(cases int) *Proof {
	if cases < 1 {
		return nil
	}
	p := Proof{Cases: cases, Confidence: l.Confidence, Rate: 1 - stats.UpperRate(0, cases, l.Confidence)}
	if l.Accuracy == nil || isOfRate(l.Accuracy.Metric) {
		_, p.Drop = stats.PairedDrop(0, 0, cases, l.Confidence)
	}
	for _, rate := range usualRates {
		if rate > p.Rate {
			p.Next, p.NextCases = rate, stats.CasesFor(1-rate, l.Confidence)
			break
		}
	}
	return &p
}

func (l Limits) provable(what string, limit *AtLeast, cases int) error {
	if limit == nil || limit.Min == 0 {
		return nil
	}
	low := 1 - stats.UpperRate(0, cases, l.Confidence)
	if low >= limit.Min {
		return nil
	}
	if limit.Min >= 1 {
		return registry.Errorf(registry.CodeInvalid,
			"%s of %s cannot be proven by any number of cases: ask for less, such as %s", what, share(limit.Min), share(math.Floor(low*100)/100))
	}
	return registry.Errorf(registry.CodeInvalid,
		"%s of %s cannot be proven: %s without a miss prove %s with %s confidence, and it takes %d; use more cases, or ask for less",
		what, share(limit.Min), registry.Count(cases, "case"), proven(low), share(l.Confidence), stats.CasesFor(1-limit.Min, l.Confidence))
}

func (l Limits) provableDrop(what string, allowed *AtMost, cases int) error {
	if allowed == nil {
		return nil
	}
	limit := allowed.Max
	_, high := stats.PairedDrop(0, 0, cases, l.Confidence)
	if high <= limit {
		return nil
	}
	if limit <= 0 {
		return registry.Errorf(registry.CodeInvalid,
			"limits: %s of %s cannot be proven by any number of cases: allow more, such as %s", what, share(limit), share(math.Ceil(high*1000)/1000))
	}
	return registry.Errorf(registry.CodeInvalid,
		"limits: %s of at most %s cannot be proven: %s without a difference prove %s with %s confidence, and it takes %d; use more cases, or allow more",
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
