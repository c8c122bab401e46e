// Package accuracy measures outputs against labels.
package accuracy

import (
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// Top1 is the metric that counts the answers that are at the index of their label.
const Top1 = "top1"

// Counter counts the answers of the reference model and of an engine to the same cases. The zero
// Counter has no cases.
type Counter struct {
	count, reference, engine int     // answers, and those that each has right
	cases                    int     // with answers
	right, lost, won         float64 // in cases, of which several answers are parts
}

// Add counts the answers to some cases, which are the rows of all tensors: outputs [cases, ...,
// classes] with the largest value at the answer, or, where the outputs are integers of the shape of
// the labels, the answers themselves. Errors: those of [tensor.Top1].
func (c *Counter) Add(reference, engine, labels tensor.Tensor) error {
	r, err := tensor.Right(reference, labels)
	if err != nil {
		return err
	}
	e, err := tensor.Right(engine, labels)
	if err != nil || len(r) == 0 {
		return err
	}
	cases := int(labels.Shape[0])
	each := len(r) / cases
	for i := range cases {
		c.addCase(r[i*each:(i+1)*each], e[i*each:(i+1)*each])
	}
	return nil
}

// addCase counts the answers to one case.
func (c *Counter) addCase(reference, engine []bool) {
	var right, lost, won int
	for i, r := range reference {
		e := engine[i]
		c.count++
		c.reference += one(r)
		right += one(e)
		lost += one(r && !e)
		won += one(e && !r)
	}
	c.engine += right
	c.cases++
	n := float64(len(reference))
	c.right, c.lost, c.won = c.right+float64(right)/n, c.lost+float64(lost)/n, c.won+float64(won)/n
}

func one(b bool) int {
	if b {
		return 1
	}
	return 0
}

// Result returns the metric of both sides, the drop from the reference model's to the engine's in
// the same unit, and what decides whether the drop is more than chance. A negative drop is a gain.
func (c *Counter) Result() registry.Accuracy {
	share := func(n int) registry.Figure { return registry.Figure(float64(n) / float64(max(c.count, 1))) }
	return registry.Accuracy{
		Metric: Top1, Reference: share(c.reference), Engine: share(c.engine), Drop: share(c.reference) - share(c.engine),
		Lost: registry.Figure(c.lost), Won: registry.Figure(c.won), Right: registry.Figure(c.right),
		Cases: c.cases, Count: c.count,
	}
}
