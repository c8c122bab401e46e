package validators

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"sort"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators/accuracy"
	"mlpromote.dev/mlpromote/validators/stats"
)

// Provable checks that each limit on a rate is one that a number of cases can prove, if none of
// them differs. Errors: CodeInvalid, which says what the cases prove and how many it takes.
func (l Limits) Provable(cases int) error {
	if l.V == 1 {
		return nil
	}
	for _, precision := range slices.Sorted(maps.Keys(l.Precisions)) {
		outputs := l.Precisions[precision].Outputs
		for _, name := range slices.Sorted(maps.Keys(outputs)) {
			what := fmt.Sprintf("limits of %s, output %q: ", precision, name)
			if err := cmp.Or(l.provable(what+"top1", outputs[name].Top1, cases), l.provable(what+"equal", outputs[name].Equal, cases),
				l.provable(what+"close", outputs[name].Close, cases)); err != nil {
				return err
			}
		}
	}
	if l.Accuracy == nil {
		return nil
	}
	return l.provableAccuracy(*l.Accuracy, cases)
}

// fewestForBounds is how many cases a bound by the bootstrap needs, see [stats.MeanBounds].
const fewestForBounds = 8

// provableAccuracy checks the limits on accuracy. What a bootstrap proves depends on the outputs: of
// metrics that jump with an answer, it is never more than what a rate does.
func (l Limits) provableAccuracy(a AccuracyLimit, cases int) error {
	m, err := accuracy.Find(a.Metric)
	if err != nil {
		return err
	}
	if !m.Rate && cases < fewestForBounds {
		return registry.Errorf(registry.CodeInvalid,
			"limits: %s cannot be bounded by %s: it takes at least %d, and more to be near", m.Name, registry.Count(cases, "case"), fewestForBounds)
	}
	if m.Smooth || m.Needs == accuracy.NeedsProgram { // whose scale is not known
		return nil
	}
	return cmp.Or(l.provable("limits: accuracy", a.Min, cases), l.provableDrop("a drop of accuracy", a.Drop, cases),
		l.provableDrop("a regression of accuracy", a.Regression, cases), l.provableRelative(a.Relative, cases))
}

// ProvableSlice checks that a slice of so many cases can prove what slices have to keep. Errors: those of
// [Limits.Provable].
func (l Limits) ProvableSlice(cases int) error {
	if l.Accuracy == nil || l.Accuracy.Slices == nil {
		return nil
	}
	limit := l.Accuracy.ofSlice()
	if limit.Min == nil && limit.Max == nil && limit.Drop == nil {
		return nil
	}
	return l.provableAccuracy(*limit, cases)
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

// RarerClass says where a limit on what an engine loses of auc takes more cases of the class that has fewer, of which there are
// rarer; empty where these do, and for other metrics. It is a warning: an engine that orders many cases otherwise has a
// closer bound, by the bootstrap.
func (l Limits) RarerClass(rarer, cases int) string {
	a := l.Accuracy
	if a == nil || a.Drop == nil || a.Drop.Max <= 0 || a.Metric != accuracy.AUC || rarer < 1 || rarer > cases {
		return ""
	}
	bound := accuracy.DropOfSameOrder(rarer, cases, l.Confidence)
	if bound <= a.Drop.Max {
		return ""
	}
	return fmt.Sprintf("%s have the rarer label, so that an engine that orders cases as the reference does proves a drop of auc of at most %s, "+
		"and the limit is %s: it takes about %.0f with that label, or allow more",
		registry.Count(rarer, "case"), share(bound), share(a.Drop.Max), math.Ceil(float64(rarer)*bound/a.Drop.Max))
}

// usualRates are limits on rates that people ask for.
var usualRates = []float64{0.9, 0.95, 0.98, 0.99, 0.995, 0.999, 0.9999, 0.99999}

// Proof says what a number of cases can prove by these limits; nil in version 1, whose rules prove
// nothing of other inputs.
func (l Limits) Proof(cases int) *Proof {
	if l.V == 1 || cases < 1 {
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
