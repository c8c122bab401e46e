package spec

import (
	"slices"

	"mlpromote.dev/mlpromote/validators"
)

// LimitOverrides gives what the spec says of limits, and of the elements that count,
// as validators take it.
func (s *Spec) LimitOverrides() validators.LimitOverrides {
	l := s.Limits
	o := validators.LimitOverrides{Outputs: make(map[string]validators.OutputLimits, len(l.Outputs)), MinCases: l.MinCases}
	for name, written := range l.Outputs {
		o.Outputs[name] = written.validators()
	}
	built := s.Precisions()
	for precision, written := range l.Precisions {
		limits := func(b string) bool { return b == precision || slices.Contains(validators.LimitedLike(b), precision) }
		if !slices.ContainsFunc(built, limits) { // it is only tried
			continue
		}
		if o.Precisions == nil {
			o.Precisions = make(map[string]map[string]validators.OutputLimits, len(l.Precisions))
		}
		o.Precisions[precision] = make(map[string]validators.OutputLimits, len(written.Outputs))
		for name, output := range written.Outputs {
			o.Precisions[precision][name] = output.validators()
		}
	}
	for name, compare := range s.Cases.Compare {
		output := o.Outputs[name]
		output.Where = compare.Where
		o.Outputs[name] = output
	}
	o.Accuracy = l.Accuracy.validators()
	if l.Confidence != nil {
		o.Confidence = float64(*l.Confidence)
	}
	if c := l.Consistency; c != nil {
		o.Consistency = &validators.ConsistencyLimits{Jitter: c.Jitter, Required: c.Required, Rare: c.Rare}
	}
	o.Latency = validators.LatencyLimits{P50: l.Latency.P50.validators(),
		P99: l.Latency.P99.validators(), Regression: l.Latency.Regression.validators()}
	return o
}

// ExpandLimits gives the limits that the spec's preset and its own words stand for,
// on a model with the interface and a number of cases. Errors: those of [validators.ExpandPreset].
func (s *Spec) ExpandLimits(i validators.Interface, cases int) (validators.Limits, error) {
	return validators.ExpandPreset(s.Limits.Preset, i, s.Precisions(), cases, s.LimitOverrides())
}
