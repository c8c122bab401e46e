package verify

import (
	"context"

	"mlpromote.dev/mlpromote/validators/accuracy"
	"mlpromote.dev/mlpromote/validators/parity"
)

// withScores adds to a comparison what the program of the metric gives to both sides. fault is why it gave
// nothing: accuracy is then not measured.
func withScores(ctx context.Context, v Session, run *parity.Run) (fault string) {
	if run.Labels.Metric.Needs != accuracy.NeedsProgram {
		return ""
	}
	reference, err := v.Scorer.Of(ctx, run.Golden)
	var engine []float64
	if err == nil {
		engine, err = v.Scorer.Of(ctx, run.Engine)
	}
	for _, score := range append(append([]float64(nil), reference...), engine...) {
		if err == nil {
			err = accuracy.CheckScore(score, run.Labels.Metric.Loss)
		}
	}
	if err != nil {
		run.Labels = parity.Labels{}
		return err.Error()
	}
	run.Labels.Scores = &parity.Scores{Reference: reference, Engine: engine}
	return ""
}
