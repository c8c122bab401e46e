// Package accuracy measures outputs against labels.
package accuracy

import (
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// Top1 is the metric that counts the cases whose largest output is at the index of their label.
const Top1 = "top1"

// Counter counts top-1 accuracy over cases. The zero Counter has no cases.
type Counter struct{ correct, total int }

// Add counts the rows of an output [..., classes] against labels [...].
func (c *Counter) Add(output, labels tensor.Tensor) error {
	correct, total, err := tensor.Top1(output, labels)
	c.correct, c.total = c.correct+correct, c.total+total
	return err
}

// Fraction returns the share of correct cases, 0 to 1; it is 0 without cases.
func (c *Counter) Fraction() float64 {
	if c.total == 0 {
		return 0
	}
	return float64(c.correct) / float64(c.total)
}

// Compare returns the metric of both sides and the drop from the reference model's to the
// engine's, in the same unit; a negative drop is a gain.
func Compare(reference, engine Counter) registry.Accuracy {
	return registry.Accuracy{
		Metric:    Top1,
		Reference: registry.Figure(reference.Fraction()),
		Engine:    registry.Figure(engine.Fraction()),
		Drop:      registry.Figure(reference.Fraction() - engine.Fraction()),
		Count:     engine.total,
	}
}
