package tune

import (
	"fmt"
	"math"
	"time"

	"mlpromote.dev/mlpromote/pipeline/spec"
	"mlpromote.dev/mlpromote/pipeline/tradeoff"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/validators"
)

// Trial is a variant for a target, and what was measured of it.
type Trial struct {
	Target    string           `json:"target"`
	Variant   string           `json:"variant"`
	Precision string           `json:"precision"`
	Spec      string           `json:"spec"` // the variant as a spec says it
	SizeBytes int64            `json:"sizeBytes"`
	Verdict   evidence.Verdict `json:"verdict"` // of parity and accuracy under the limits of the spec
	Reasons   []string         `json:"reasons,omitempty"`
	// Loss is the drop of accuracy, or without labels the noise of the outputs in dB:
	// minus their signal to noise ratio. NaN where outputs could not be compared.
	Loss       evidence.Figure    `json:"loss"`
	Accuracy   *evidence.Accuracy `json:"accuracy,omitempty"`
	Latency    *evidence.Latency  `json:"latency,omitempty"` // nil where there was no time for it
	Front      bool               `json:"front"`
	Violations []string           `json:"violations,omitempty"` // constraints of the objective that it breaks
}

// Label names the trial.
func (t Trial) Label() string { return t.Target + "/" + t.Variant }

// Skipped is a variant that was not measured, and why.
type Skipped struct {
	Label  string `json:"label"`
	Reason string `json:"reason"`
}

// Result is what a tuning found.
type Result struct {
	Model     string             `json:"model"`
	Node      artifact.Node      `json:"node"`
	Goal      string             `json:"goal"`
	Loss      string             `json:"loss"` // what Loss of trials is: "accuracy drop" or "noise"
	Trials    []Trial            `json:"trials"`
	Skipped   []Skipped          `json:"skipped,omitempty"`
	Chosen    int                `json:"chosen"` // index of a trial; -1 if no trial keeps all constraints
	Advice    []string           `json:"advice"`
	Elapsed   time.Duration      `json:"elapsedNs"`
	points    []tradeoff.Point   // of the trials that were timed
	indexes   []int              // of the trial of each point
	Objective tradeoff.Objective `json:"-"`
}

// What losses of trials are.
const (
	LossAccuracy = "accuracy drop"
	LossNoise    = "noise"
)

// conclude finds the front, the choice and what to say about it.
func (t *tuning) conclude() {
	r := &t.result
	for i, trial := range r.Trials {
		if trial.Latency != nil && !math.IsNaN(float64(trial.Loss)) {
			r.points, r.indexes = append(r.points, trial.point()), append(r.indexes, i)
		}
	}
	for _, n := range tradeoff.Front(r.points) {
		r.Trials[r.indexes[n]].Front = true
	}
	for n, p := range r.points {
		r.Trials[r.indexes[n]].Violations = r.Objective.Violations(p)
	}
	r.Chosen = -1
	if n, ok := r.Objective.Choose(r.points); ok {
		r.Chosen = r.indexes[n]
	}
	r.Advice = r.Objective.Advice(r.points)
	r.Elapsed = t.env.Time().Sub(t.began)
}

func (t Trial) point() tradeoff.Point {
	numbers, _ := artifact.NumberFormat(t.Precision)
	return tradeoff.Point{
		Name: t.Label(), SizeBytes: t.SizeBytes, Loss: float64(t.Loss),
		P50Ns: t.Latency.P50Ns, P99Ns: t.Latency.P99Ns, PerSecond: t.Latency.PerSecond,
		Keeps: t.Verdict == evidence.VerdictPass,
		Int8:  numbers == validators.PrecisionInt8 || numbers == validators.PrecisionInt4,
	}
}

// Plot draws the trials that were timed, as SVG. Errors: CodeInvalid if no trial was timed.
func (r Result) Plot() ([]byte, error) {
	if len(r.points) == 0 {
		return nil, registry.Errorf(registry.CodeInvalid, "nothing was timed, so there is nothing to draw")
	}
	plot := tradeoff.Plot{Title: fmt.Sprintf("%s on %s", r.Model, r.Node.Kind()),
		Loss: "noise of the outputs, dB", Chosen: -1}
	if r.Loss == LossAccuracy {
		plot.Loss, plot.Scale = "accuracy drop, percentage points", 100
	}
	for n, i := range r.indexes {
		if i == r.Chosen {
			plot.Chosen = n
		}
	}
	return plot.SVG(r.points), nil
}

// Write puts the chosen variant into the text of the spec. Errors: CodeLimit where none
// was chosen; those of [spec.ReplaceVariants].
func (r Result) Write(s *spec.Spec, text []byte) ([]byte, error) {
	if r.Chosen < 0 {
		return nil, registry.Errorf(registry.CodeLimit, "no variant keeps all constraints, so none is written")
	}
	for _, v := range s.Candidates() {
		if v.Name == r.Trials[r.Chosen].Variant {
			return spec.ReplaceVariants(s.File, text, v.Written())
		}
	}
	return nil, registry.Errorf(registry.CodeInternal, "%s is not a candidate", r.Trials[r.Chosen].Variant)
}

// WriteFile puts the chosen variant into the file of the spec, which keeps its mode. Errors: those of
// [Result.Write].
func (r Result) WriteFile(s *spec.Spec, file string) error {
	return spec.Rewrite(file, func(text []byte) ([]byte, error) { return r.Write(s, text) })
}

// CostPerMillion is the cost of a million predictions on a machine with a price per hour. The trial must have
// a latency.
func (t Trial) CostPerMillion(price float64) float64 {
	return tradeoff.CostPerMillion(price, t.Latency.PerSecond)
}
