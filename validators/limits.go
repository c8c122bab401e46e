package validators

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/figure"
	"mlpromote.dev/mlpromote/validators/accuracy"
)

// LimitsVersion is the version of limits.json that this program reads and writes, and with it of the
// rules by which engines are judged:
//
//   - A limit on elements or on the worst case holds if it holds for every case that ran.
//   - A limit on a rate, such as accuracy, holds if the exact bound of the rate does, at the
//     confidence of the limits. Where the bound on the other side does not exclude the limit,
//     the cases are not enough, which is undecided.
//   - SNR and errors are relative to the spread of the reference's values.
const LimitsVersion = evidence.ReportRules

// DefaultConfidence is the confidence at which limits on rates must hold.
const DefaultConfidence = 0.95

// MetricTop1 is the fraction of rows whose largest value is at the label.
const MetricTop1 = accuracy.Top1

// Limits is what every engine of a release must keep: the content of limits.json. It
// is fixed before anything is measured. The zero Limits is invalid.
type Limits struct {
	V          int                        `json:"v"`
	Precisions map[string]PrecisionLimits `json:"precisions"`
	Accuracy   *AccuracyLimit             `json:"accuracy,omitempty"`
	Latency    LatencyLimits              `json:"latency"`
	MinCases   int                        `json:"minCases"` // fewer cases decide nothing; at least 1
	// Confidence is the one-sided level of bounds of rates, above 0.5 and below 1.
	Confidence float64 `json:"confidence,omitempty"`
	// Consistency is more that consistency checks must find.
	Consistency *ConsistencyLimits `json:"consistency,omitempty"`
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
	RTol      *float64 `json:"rtol,omitempty"`
	ATol      *float64 `json:"atol,omitempty"`
	Cosine    *AtLeast `json:"cosine,omitempty"`    // of the worst case; -1 to 1
	Top1      *AtLeast `json:"top1,omitempty"`      // fraction of rows with the reference's argmax; 0 to 1
	SNRdB     *AtLeast `json:"snrDb,omitempty"`     // of tensor.Result.SpreadSNR, over all elements
	MaxAbs    *AtMost  `json:"maxAbs,omitempty"`    // of |engine-reference|
	Equal     *AtLeast `json:"equal,omitempty"`     // fraction of elements that equal the reference's; 0 to 1
	MaxError  *AtMost  `json:"maxError,omitempty"`  // of |engine-reference| / spread
	CaseError *AtMost  `json:"caseError,omitempty"` // root mean square error of the worst case / spread
	// QuarterError bounds the error in each quarter of the reference's values by their size, relative to the spread of the quarter. Where
	// the values are not above 0, or span less than a factor of ten, it asks for nothing.
	QuarterError *AtMost `json:"quarterError,omitempty"`
	// QuartersAlone lets QuarterError replace the limits on errors relative to the spread of all values, where there are quarters: the
	// spec has none of these limits of its own.
	QuartersAlone bool `json:"quartersAlone,omitempty"`
	// Systematic bounds tensor.Result.Systematic: offsets and factors of a channel, which single
	// errors hide in.
	Systematic *AtMost `json:"systematic,omitempty"`
	// Close bounds the share of cases that are not among tensor.Result.FarCases; 0 to 1.
	Close *AtLeast `json:"close,omitempty"`
	// Detections bounds the share of detections that agree, of an output of kind detections; 0 to 1.
	Detections *AtLeast `json:"detections,omitempty"`
	// PerChannel takes the spread of each index along the last axis in place of that of all
	// values. It is not a limit itself. False turns off that of a preset; stored limits have true or nil.
	PerChannel *bool `json:"perChannel,omitempty"`
}

func (o OutputLimits) perChannel() bool { return o.PerChannel != nil && *o.PerChannel }

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
	Metric string `json:"metric"` // of [accuracy.Metrics]
	// Drop is reference minus engine, as a fraction: 0.005 is half a percentage point. Of a metric
	// of which less is better it is the part by which the engine's may be larger: 0.005 is half a
	// percent of the reference's.
	Drop       *AtMost  `json:"drop,omitempty"`
	Output     string   `json:"output,omitempty"`     // that is compared with labels; empty: the first that fits
	Min        *AtLeast `json:"min,omitempty"`        // of the engine
	Max        *AtMost  `json:"max,omitempty"`        // of the engine, where less is better
	Regression *AtMost  `json:"regression,omitempty"` // the engine now in the destination minus this one, on the same cases, as Drop
	Relative   *AtLeast `json:"relative,omitempty"`   // the engine's over the reference's, and the reverse where less is better: 0.99
	// Slices are judged one by one, and all of them have to keep what it bounds.
	Slices *SliceLimit `json:"slices,omitempty"`
	// Detections are the outputs of a metric of boxes, in place of Output.
	Detections *accuracy.Detections `json:"detections,omitempty"`
	// Program is the digest of the program that computes the metric, where one does.
	Program registry.Digest `json:"program,omitempty"`
}

// SliceLimit bounds the accuracy on each slice of the cases. Without a bound slices are only reported.
type SliceLimit struct {
	By   string   `json:"by"`             // tensor of the cases that has the number of a slice for each
	Min  *AtLeast `json:"min,omitempty"`  // as in AccuracyLimit
	Max  *AtMost  `json:"max,omitempty"`  // as in AccuracyLimit
	Drop *AtMost  `json:"drop,omitempty"` // as in AccuracyLimit
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
	if err := l.validateVersion(); err != nil {
		return err
	}
	if len(l.Precisions) == 0 {
		return registry.Errorf(registry.CodeInvalid, "limits: no precision has any")
	}
	if l.MinCases < 1 {
		return registry.Errorf(registry.CodeInvalid, "limits: minCases %d: want at least 1", l.MinCases)
	}
	if err := l.validateOutputs(); err != nil {
		return err
	}
	if err := l.Accuracy.Validate(); err != nil {
		return err
	}
	if err := l.Consistency.validate(); err != nil {
		return err
	}
	return l.Latency.Validate()
}

func (l Limits) validateVersion() error {
	switch {
	case l.V != LimitsVersion:
		return registry.Errorf(registry.CodeInvalid, "limits version %d: this program reads version %d", l.V, LimitsVersion)
	case !(l.Confidence > 0.5 && l.Confidence < 1):
		return registry.Errorf(registry.CodeInvalid, "limits: confidence %v: want more than 0.5 and less than 1", l.Confidence)
	}
	return nil
}

func (l Limits) validateOutputs() error {
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
	return nil
}

// Validate checks that there is a limit and that each can be kept. Errors: CodeInvalid.
func (o OutputLimits) Validate() error {
	if o == (OutputLimits{Where: o.Where, PerChannel: o.PerChannel, QuartersAlone: o.QuartersAlone}) {
		return registry.Errorf(registry.CodeInvalid, "no limit: want one of rtol, atol, %s", strings.Join(figure.Keys(), ", "))
	}
	if o.Where != "" && !isName(o.Where) {
		return registry.Errorf(registry.CodeInvalid, "where %.64q: want the name of an input", o.Where)
	}
	if err := cmp.Or(within("rtol", o.RTol, 0, math.MaxFloat64), within("atol", o.ATol, 0, math.MaxFloat64)); err != nil {
		return err
	}
	for _, row := range figure.OfOutputs() {
		if limit, there := o.Bound(row); there {
			if err := within(row.Key+"."+boundKey(row.AtLeast), &limit, row.Low, row.High); err != nil {
				return err
			}
		}
	}
	return nil
}

// Validate checks that there is something to keep, and that the metric can keep it. Errors: CodeInvalid.
func (a *AccuracyLimit) Validate() error {
	if a == nil {
		return nil
	}
	switch {
	case a.Output != "" && !isName(a.Output):
		return registry.Errorf(registry.CodeInvalid, "accuracy.output %.64q: want the name of an output", a.Output)
	case *a == AccuracyLimit{Metric: a.Metric, Output: a.Output, Detections: a.Detections, Program: a.Program}:
		return registry.Errorf(registry.CodeInvalid, "accuracy: want one of drop, min, max, relative, regression")
	}
	return a.validateMetric()
}

// DetectedBy returns the outputs of a metric of boxes, if the limit names them.
func (a *AccuracyLimit) DetectedBy() *accuracy.Detections {
	if a == nil {
		return nil
	}
	return a.Detections
}

// Validate checks that each limit can be kept. Errors: CodeInvalid.
func (l LatencyLimits) Validate() error {
	for _, t := range []*TimeAtMost{l.P50, l.P99} {
		if t != nil && (t.MaxNs < 1 || t.MaxNs >= 1<<53) {
			return registry.Errorf(registry.CodeInvalid,
				"latency limit of %d ns: want more than 0 and less than 100 days", t.MaxNs)
		}
	}
	return l.Regression.within("latency.regression.max", math.MaxFloat64)
}

// boundKey is the key of a bound in YAML and JSON.
func boundKey(atLeast bool) string {
	if atLeast {
		return "min"
	}
	return "max"
}

func (a *AtLeast) within(what string, low, high float64) error {
	if a == nil {
		return nil
	}
	return within(what, &a.Min, low, high)
}

func (a *AtMost) within(what string, high float64) error {
	if a == nil {
		return nil
	}
	return within(what, &a.Max, 0, high)
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
