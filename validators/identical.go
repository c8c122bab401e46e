package validators

import (
	"fmt"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/figure"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// FewestIdentical is how many cases without another bit show that an engine computes what the reference does: decision 92.
const FewestIdentical = 20

// identical returns in how many cases all float outputs have the bits of the reference; 0 if one differs in any case, if there are fewer
// than 20, and without such an output: classes and tokens alone are equal too where what they are taken from is not.
func identical(outputs map[string]tensor.Result) int {
	var of fewestOf
	for _, r := range outputs {
		if r.Float {
			of.add(r.Identical)
		}
	}
	return of.enough()
}

// identicalOf is identical by what a report has.
func identicalOf(outputs map[string]evidence.OutputFigures, ran int) int {
	var of fewestOf
	for _, o := range outputs {
		switch {
		case tensor.DType(o.DType).Class() != tensor.ClassFloat:
		case o.MaxAbs != 0 || o.NewNaN > 0 || o.NewInf > 0 || o.Identical > ran:
			of.add(0)
		default:
			of.add(o.Identical)
		}
	}
	return of.enough()
}

// fewestOf is the smallest number of cases over the float outputs.
type fewestOf struct{ outputs, fewest int }

func (f *fewestOf) add(cases int) {
	if f.outputs == 0 || cases < f.fewest {
		f.fewest = cases
	}
	f.outputs++
}

func (f *fewestOf) enough() int {
	if f.fewest < FewestIdentical {
		return 0
	}
	return f.fewest
}

// sameBits passes a check of a difference or a drop that the bounds do not prove, if no bit differs and the check has no difference either.
func (j *judgement) sameBits(c *evidence.Check, differs bool, rarest int) bool {
	if !passesBySameBits(*c, differs, j.identical) {
		return false
	}
	c.Verdict, c.Identical, c.Rarest = evidence.VerdictPass, j.identical, rarest
	return true
}

// passesBySameBits is the rule of [judgement.sameBits]. A limit on the accuracy itself is none on a difference, and a regression is one from
// another engine.
func passesBySameBits(c evidence.Check, differs bool, identical int) bool {
	return identical > 0 && c.Cases >= FewestIdentical && !differs && c.Verdict == evidence.VerdictUndecided && c.Figure != figure.Accuracy && c.Figure != figure.Regression
}

// IdenticalText says of a check that passed since no bit differs what it rests on; empty for others.
func IdenticalText(c evidence.Check) string {
	switch {
	case c.Identical == 0:
		return ""
	case c.Rarest == 0:
		return "no difference in " + registry.Count(c.Identical, "case")
	}
	return fmt.Sprintf("no difference in %s, %d of the rarest class", registry.Count(c.Identical, "case"), c.Rarest)
}
