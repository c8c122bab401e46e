package validators

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/figure"
	"mlpromote.dev/mlpromote/validators/accuracy"
	"mlpromote.dev/mlpromote/validators/stats"
)

// Suggestion is limits that engines would keep, as far as some cases show, with a margin. None of an
// output is looser than the limit of its report: an engine that does not keep those is left out. The zero Suggestion is none: see
// [NewSuggestion].
type Suggestion struct {
	Cases   int `json:"cases"`   // that it rests on, none of which the verdict is over
	Verdict int `json:"verdict"` // cases that the verdict is over, which rates have to be proven by
	Reports int `json:"engines"` // that it rests on
	// Precisions has a limit for each figure, by precision and output.
	Precisions map[string]map[string]OutputLimits `json:"precisions"`
	Metric     string                             `json:"metric,omitempty"`
	Drop       *AtMost                            `json:"drop,omitempty"` // of accuracy, if there are labels
	// Measured says, as keys of a spec, how that accuracy is measured: "metric: top1". Where it is empty
	// the metric alone says it.
	Measured string    `json:"-"`
	LeftOut  []LeftOut `json:"leftOut"`
}

// The margins of a suggestion, for what the cases of the verdict may show that these did not. The fewer
// cases it rests on, the more of those of the verdict exceed the worst of them: see [Suggestion.factor].
const (
	marginFactor = 1.5 // of errors, at least
	marginDB     = 3
)

// factor is the margin of the error of the worst case: all cases of the verdict keep it with 95 %
// probability, if the tail of the errors is exponential or lighter.
func (s *Suggestion) factor(c evidence.Check) float64 {
	return math.Max(marginFactor, stats.UpperLargest(c.Cases, s.Verdict, DefaultConfidence))
}

// NewSuggestion returns a suggestion that rests on a number of cases, for a verdict over another.
func NewSuggestion(cases, verdict int) *Suggestion {
	return &Suggestion{Cases: cases, Verdict: verdict, Precisions: map[string]map[string]OutputLimits{}, LeftOut: []LeftOut{}}
}

// Add takes the report of an engine: limits are those that every engine of a precision would keep. An engine
// that fails a limit of its report is left out.
func (s *Suggestion) Add(engine, precision string, report evidence.ParityReport) {
	if failed := leftOut(engine, report); len(failed) > 0 {
		s.LeftOut = append(s.LeftOut, failed...)
		return
	}
	s.Reports++
	outputs := s.Precisions[precision]
	if outputs == nil {
		outputs = map[string]OutputLimits{}
		s.Precisions[precision] = outputs
	}
	for _, c := range report.Checks.OfCases() {
		if c.Output != "" {
			outputs[c.Output] = s.looser(outputs[c.Output], c)
		}
	}
	if a := report.Accuracy; a != nil && a.Cases > 0 && report.Confidence > 0 {
		drop := s.dropOf(*a, report.Checks.OfCases(), float64(report.Confidence))
		s.Metric = a.Metric
		if math.IsNaN(drop) || math.IsInf(drop, 0) { // a share of a reference without errors
			return
		}
		if s.Drop == nil || drop > s.Drop.Max {
			s.Drop = &AtMost{drop}
		}
	}
}

// looser is the limits with one that a figure keeps, which is not looser than the one of the report.
func (s *Suggestion) looser(o OutputLimits, c evidence.Check) OutputLimits {
	value, now, tenth := float64(c.Value), float64(c.LimitValue()), float64(c.LimitValue())/10
	atMost := func(factor float64) float64 { return math.Min(now, up(math.Max(factor*value, tenth))) }
	row, _ := figure.Find(c.Figure)
	switch {
	case row.Subject != figure.Output || row.Name == figure.MaxAbs:
		return o
	case row.Rate:
		value = s.rateOf(c)
	case row.Unit == figure.Decibels: // 20 dB above the usual limit is enough of a limit
		value = math.Max(now, math.Floor(math.Min(value-marginDB, now+20)))
	case row.AtLeast:
		value = math.Max(now, 1-up(math.Max(s.factor(c)*(1-value), (1-now)/10)))
	case row.Overall: // of which the fewer cases are, the more is taken for chance
		value = math.Min(now, math.Max(atMost(marginFactor), now/2))
	default:
		value = atMost(s.factor(c))
	}
	if have, there := o.Bound(row); there {
		value = row.Looser(have, value)
	}
	o.SetBound(row, value)
	return o
}

// rateOf is a rate that the cases of the verdict prove if they miss as often as these do at most. It is no looser than the limit of the
// report, as far as these cases can prove that.
func (s *Suggestion) rateOf(c evidence.Check) float64 {
	now := math.Min(float64(c.LimitValue()), s.proven(0))
	if c.Misses == nil || c.Cases < 1 {
		return now
	}
	misses := math.Ceil(marginFactor * float64(*c.Misses) / float64(c.Cases) * float64(s.Verdict))
	if misses == 0 && s.Verdict >= 10 {
		misses = 1
	}
	return math.Max(now, s.proven(math.Min(misses, float64(s.Verdict))))
}

// proven is the rate that the cases of the verdict prove with so many misses.
func (s *Suggestion) proven(misses float64) float64 {
	return math.Floor(1000*(1-stats.UpperRate(misses, s.Verdict, DefaultConfidence))) / 1000
}

// dropOf is a drop that the cases of the verdict prove if they come out like these.
func (s *Suggestion) dropOf(a evidence.Accuracy, checks evidence.Checks, confidence float64) float64 {
	m, err := accuracy.Find(a.Metric)
	if err != nil {
		return 1
	}
	if !m.Rate {
		least := 0.005
		if !m.Smooth { // no cases prove less than those of a rate do
			_, proven := stats.PairedDrop(0, 0, s.Verdict, confidence)
			least = math.Max(least, proven)
		}
		return up(math.Max(marginFactor*float64(a.Drop), math.Max(least, s.provable(a, m, checks, confidence))))
	}
	scale := float64(s.Verdict) / float64(a.Cases)
	lost, won := int(math.Ceil(marginFactor*float64(a.Lost)*scale)), int(math.Floor(float64(a.Won)*scale))
	_, high := stats.PairedDrop(min(lost, s.Verdict-won), won, s.Verdict, confidence)
	return math.Max(0, math.Ceil(1000*high)/1000)
}

// provable is the drop of a metric by the bootstrap that the cases of the verdict prove, if they come out
// like these: the bound that these prove, nearer by the root of the numbers of cases. Where nothing
// differs the bound is exact, and comes nearer as that of a rate without a miss.
func (s *Suggestion) provable(a evidence.Accuracy, m accuracy.Metric, checks evidence.Checks, confidence float64) float64 {
	for _, c := range checks {
		if c.Figure != figure.Relative || c.Slice != "" || c.Low == nil || !(*c.Low > 0) {
			continue
		}
		bound := float64(a.Reference) * (1 - float64(*c.Low))
		if m.Loss {
			bound = 1/float64(*c.Low) - 1
		}
		nearer := math.Sqrt(float64(a.Cases) / float64(max(s.Verdict, 1)))
		if a.Drop == 0 {
			nearer = stats.UpperRate(0, s.Verdict, confidence) / stats.UpperRate(0, a.Cases, confidence)
		}
		return float64(a.Drop) + (bound-float64(a.Drop))*nearer
	}
	return 0
}

// up rounds up to two digits.
func up(v float64) float64 {
	if !(v > 0) || math.IsInf(v, 1) {
		return v
	}
	digit := math.Pow(10, math.Floor(math.Log10(v))-1)
	return math.Ceil(v/digit-1e-9) * digit
}

// YAML writes the suggestion as the limits of a spec.
func (s *Suggestion) YAML() string {
	if len(s.Precisions) == 0 {
		return "" // all engines are left out
	}
	text := "limits:\n  precisions:\n"
	for _, precision := range slices.Sorted(maps.Keys(s.Precisions)) {
		text += "    " + precision + ":\n      outputs:\n"
		outputs := s.Precisions[precision]
		for _, name := range slices.Sorted(maps.Keys(outputs)) {
			text += fmt.Sprintf("        %q: {%s}\n", name, outputs[name].yaml())
		}
	}
	if s.Drop != nil {
		text += fmt.Sprintf("  accuracy: {%s, drop: {max: %.4g}}\n", cmp.Or(s.Measured, "metric: "+s.Metric), s.Drop.Max)
	}
	return text
}

func (o OutputLimits) yaml() string {
	var parts []string
	for _, row := range figure.OfOutputs() {
		limit, there := o.Bound(row)
		switch {
		case there && row.AtLeast:
			parts = append(parts, fmt.Sprintf("%s: {min: %.6g}", row.Key, limit))
		case there:
			parts = append(parts, fmt.Sprintf("%s: {max: %.4g}", row.Key, limit))
		}
	}
	return strings.Join(parts, ", ")
}
