package validators

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"

	"mlpromote.dev/mlpromote/registry"
)

// LimitsVersion is the version of limits.json that this program reads.
const LimitsVersion = 1

// MetricTop1 is the metric that accuracy can be limited by: the fraction of rows
// whose largest value is at the label.
const MetricTop1 = "top1"

// Limits is what every engine of a release must keep: the content of limits.json. It
// is fixed before anything is measured. The zero Limits is invalid.
type Limits struct {
	V          int                        `json:"v"`
	Precisions map[string]PrecisionLimits `json:"precisions"`
	Accuracy   *AccuracyLimit             `json:"accuracy,omitempty"`
	Latency    LatencyLimits              `json:"latency"`
	MinCases   int                        `json:"minCases"` // fewer cases decide nothing; at least 1
}

// PrecisionLimits are the limits of the engines of one precision: every output has some.
type PrecisionLimits struct {
	Outputs map[string]OutputLimits `json:"outputs"`
}

// OutputLimits bound how far an output may be from the reference's, by the figures
// of package tensor. An absent limit asks for nothing; at least one is there.
type OutputLimits struct {
	// Where names the input that says which elements count: those at whose place it is
	// not 0. The input's dimensions are the first of the output's, and what follows goes
	// along: a mask [batch, seq] lets rows of [batch, seq, width] count or not. Empty
	// where all count. It is not a limit itself, and is here since it loosens every limit.
	Where string `json:"where,omitempty"`
	// RTol and ATol bound every element: |engine-reference| <= ATol + RTol*|reference|.
	// Where one is there, an absent other is 0.
	RTol   *float64 `json:"rtol,omitempty"`
	ATol   *float64 `json:"atol,omitempty"`
	Cosine *AtLeast `json:"cosine,omitempty"` // of the worst case; -1 to 1
	Top1   *AtLeast `json:"top1,omitempty"`   // fraction of rows with the reference's argmax; 0 to 1
	SNRdB  *AtLeast `json:"snrDb,omitempty"`  // over all elements
	MaxAbs *AtMost  `json:"maxAbs,omitempty"` // of |engine-reference|
}

// AtLeast bounds a figure from below.
type AtLeast struct {
	Min float64 `json:"min"`
}

// AtMost bounds a figure from above.
type AtMost struct {
	Max float64 `json:"max"`
}

// AccuracyLimit bounds what an engine may lose against the reference on labelled cases.
type AccuracyLimit struct {
	Metric string `json:"metric"` // MetricTop1
	Drop   AtMost `json:"drop"`   // reference minus engine, as a fraction: 0.005 is half a percentage point
}

// LatencyLimits bound the time of single runs. Absent limits ask for nothing.
type LatencyLimits struct {
	P50        *TimeAtMost `json:"p50,omitempty"`
	P99        *TimeAtMost `json:"p99,omitempty"`
	Regression *AtMost     `json:"regression,omitempty"` // of p50 against the engine now in the destination: 0.1 is 10 % slower
}

// TimeAtMost bounds a time from above.
type TimeAtMost struct {
	MaxNs time.Duration `json:"maxNs"` // a number of nanoseconds
}

// ParseLimits reads limits.json, which is canonical JSON (RFC 8785) and nothing
// else: a limit that this program does not know is one that it could not keep.
// Errors: CodeInvalid.
func ParseLimits(data []byte) (Limits, error) {
	var l Limits
	if err := parseCanonical("limits.json", data, &l, func() ([]byte, error) { return l.Encode() }); err != nil {
		return Limits{}, err
	}
	return l, nil
}

// Encode writes the limits as canonical JSON. Errors: those of Validate.
func (l Limits) Encode() ([]byte, error) {
	if err := l.Validate(); err != nil {
		return nil, err
	}
	return registry.CanonicalJSON(l)
}

// For gives the limits of an output in a precision. None means that such an engine
// cannot be judged, not that it is free.
func (l Limits) For(precision, output string) (OutputLimits, bool) {
	limits, ok := l.Precisions[precision].Outputs[output]
	return limits, ok
}

// Validate checks that there is something to keep for every output and that it can
// be kept. Errors: CodeInvalid, naming precision, output and figure.
func (l Limits) Validate() error {
	if l.V != LimitsVersion {
		return registry.Errorf(registry.CodeInvalid, "limits version %d: this program reads version %d", l.V, LimitsVersion)
	}
	if len(l.Precisions) == 0 {
		return registry.Errorf(registry.CodeInvalid, "limits: no precision has any")
	}
	if l.MinCases < 1 {
		return registry.Errorf(registry.CodeInvalid, "limits: minCases %d: want at least 1", l.MinCases)
	}
	for _, precision := range slices.Sorted(maps.Keys(l.Precisions)) {
		outputs := l.Precisions[precision].Outputs
		if len(outputs) == 0 {
			return registry.Errorf(registry.CodeInvalid, "limits of %s: no output has any", precision)
		}
		for _, output := range slices.Sorted(maps.Keys(outputs)) {
			if err := outputs[output].Validate(); err != nil {
				return registry.Errorf(registry.CodeInvalid, "limits of %s, output %q: %s", precision, output, err.Error())
			}
		}
	}
	if err := l.Accuracy.validate(); err != nil {
		return err
	}
	return l.Latency.Validate()
}

// Validate checks that there is a limit and that each can be kept. Errors: CodeInvalid.
func (o OutputLimits) Validate() error {
	if o == (OutputLimits{Where: o.Where}) {
		return registry.Errorf(registry.CodeInvalid, "no limit: want one of rtol, atol, cosine, top1, snr, max_abs")
	}
	if o.Where != "" && !isName(o.Where) {
		return registry.Errorf(registry.CodeInvalid, "where %.64q: want the name of an input", o.Where)
	}
	return cmp.Or(within("rtol", o.RTol, 0, math.MaxFloat64), within("atol", o.ATol, 0, math.MaxFloat64),
		o.Cosine.within("cosine.min", -1, 1), o.Top1.within("top1.min", 0, 1),
		o.SNRdB.within("snr.min", -math.MaxFloat64, math.MaxFloat64),
		o.MaxAbs.within("max_abs.max", 0, math.MaxFloat64))
}

func (a *AccuracyLimit) validate() error {
	if a == nil {
		return nil
	}
	if a.Metric != MetricTop1 {
		return registry.Errorf(registry.CodeInvalid, "accuracy metric %q: want %s", a.Metric, MetricTop1)
	}
	return a.Drop.within("accuracy.drop.max", 0, 1)
}

// Validate checks that each limit can be kept. Errors: CodeInvalid.
func (l LatencyLimits) Validate() error {
	for _, t := range []*TimeAtMost{l.P50, l.P99} {
		if t != nil && (t.MaxNs < 1 || t.MaxNs >= 1<<53) {
			return registry.Errorf(registry.CodeInvalid,
				"latency limit of %d ns: want more than 0 and less than 100 days", t.MaxNs)
		}
	}
	return l.Regression.within("latency.regression.max", 0, math.MaxFloat64)
}

func (a *AtLeast) within(what string, low, high float64) error {
	if a == nil {
		return nil
	}
	return within(what, &a.Min, low, high)
}

func (a *AtMost) within(what string, low, high float64) error {
	if a == nil {
		return nil
	}
	return within(what, &a.Max, low, high)
}

// within refuses what is outside of the bounds, NaN included.
func within(what string, v *float64, low, high float64) error {
	switch {
	case v == nil || *v >= low && *v <= high:
		return nil
	case math.Abs(low) == math.MaxFloat64:
		return registry.Errorf(registry.CodeInvalid, "%s %v: want a finite number", what, *v)
	case high == math.MaxFloat64:
		return registry.Errorf(registry.CodeInvalid, "%s %v: want a finite number of at least %v", what, *v, low)
	}
	return registry.Errorf(registry.CodeInvalid, "%s %v: want a number from %v to %v", what, *v, low, high)
}
