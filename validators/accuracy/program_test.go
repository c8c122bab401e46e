package accuracy_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"mlpromote.dev/mlpromote/validators/accuracy"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// scoreSets draws scores from 0 to 1.
func scoreSets(r *rand.Rand, n int) (reference, engine set) {
	reference, engine = set{width: 1, labels: make([]float64, n)}, set{width: 1, labels: make([]float64, n)}
	for range n {
		v := r.Float64()
		reference.outputs, engine.outputs = append(reference.outputs, v), append(engine.outputs, min(max(v+0.1*r.NormFloat64(), 0), 1))
	}
	return reference, engine
}

func TestScoresRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		metric            string
		reference, engine []float64
		ok                bool
	}{
		"scores":                {"program", []float64{1, -2}, []float64{30, 0}, true},
		"errors":                {"program_lower", []float64{1, 0}, []float64{30, 0}, true},
		"a negative error":      {"program_lower", []float64{1, 0}, []float64{30, -0.1}, false},
		"NaN":                   {"program", []float64{1, 0}, []float64{1, math.NaN()}, false},
		"infinity of a side":    {"program", []float64{math.Inf(1), 0}, []float64{1, 0}, false},
		"fewer of one side":     {"program", []float64{1, 0}, []float64{1}, false},
		"a metric without any":  {"mae", []float64{1}, []float64{1}, false},
		"a rate without a side": {"top1", []float64{1}, []float64{1}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := accuracy.NewCounter(metric(t, c.metric), false, 0).AddScores(c.reference, c.engine)
			if (err == nil) != c.ok || err != nil && !errors.Is(err, tensor.ErrMismatch) {
				t.Errorf("got %v, want a mismatch: %t", err, !c.ok)
			}
		})
	}
}

// Shares that all are 1 prove what so many right answers do; numbers of another scale what was seen.
func TestScoresOfOneValue(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ value, least, most float64 }{"shares": {1, 0.95, 0.995}, "decibels": {30, 30, 30}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			scores := make([]float64, 300)
			for i := range scores {
				scores[i] = c.value
			}
			counter := accuracy.NewCounter(metric(t, "program"), false, 0)
			if err := counter.AddScores(scores, scores); err != nil {
				t.Fatal(err)
			}
			if b := counter.Figures().Absolute(0.95); b.Value != c.value || b.Low < c.least || b.Low > c.most {
				t.Errorf("bounds %+v, want a lower one from %v to %v", b, c.least, c.most)
			}
		})
	}
}
