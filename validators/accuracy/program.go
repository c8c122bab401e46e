package accuracy

import (
	"math"

	"mlpromote.dev/mlpromote/validators/tensor"
)

// The names of the metrics whose figure is the mean of what a program of the user gives to each case.
const (
	Program      = "program"       // more is better
	ProgramLower = "program_lower" // less is better
)

// scores has one number for each case, which a program gave.
type scores struct {
	loss  bool
	cases []float64
}

// add refuses, since scores come through [Counter.AddScores].
func (*scores) add(tensor.Tensor, tensor.Tensor) error {
	return mismatchf("the metric is computed by a program, and not from outputs and labels")
}

func (s *scores) size() int { return len(s.cases) }

// contributions are the scores. Where all of them are from 0 to 1, as shares are, a case can have any of
// these; else what any case had.
func (s *scores) contributions(of []int) Contributions {
	c := Contributions{Each: pick(s.cases, of)}.seen()
	if c.Least >= 0 && c.Most <= 1 || s.loss {
		c.Least, c.Most = min(c.Least, 0), max(c.Most, 1)
		c.weight = 1
	}
	return c
}

func (s *scores) columns() Columns { return Columns{"score": column(s.cases)} }

func (s *scores) restore(r *reading) {
	s.cases = r.floats("score")
	for i, v := range s.cases {
		if err := CheckScore(v, s.loss); err != nil {
			r.fail("column %sscore: case %d: %s", r.prefix, i, err.Error())
			return
		}
	}
}

// CheckScore checks the score of a case: a finite number, and where less is better at least 0. Errors:
// of kind tensor.ErrMismatch.
func CheckScore(score float64, lower bool) error {
	switch {
	case math.IsNaN(score) || math.IsInf(score, 0):
		return mismatchf("score %v: want a finite number", score)
	case lower && score < 0:
		return mismatchf("score %v: want at least 0, since less is better", score)
	}
	return nil
}

// AddScores takes the scores of both sides for some cases, as many of both. Errors: of kind
// tensor.ErrMismatch for a metric that no program computes, and for scores that [CheckScore] refuses.
func (c *Counter) AddScores(reference, engine []float64) error {
	r, ok := c.reference.(*scores)
	if !ok || len(reference) != len(engine) {
		return mismatchf("%d and %d scores for metric %s", len(reference), len(engine), c.metric.Name)
	}
	for i := range reference {
		for _, v := range []float64{reference[i], engine[i]} {
			if err := CheckScore(v, r.loss); err != nil {
				return err
			}
		}
	}
	e := c.engine.(*scores) //nolint:forcetypeassert // both sides are made alike
	r.cases, e.cases = append(r.cases, reference...), append(e.cases, engine...)
	return nil
}
