package validators

import (
	"fmt"
	"math"

	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/figure"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// oneSpread reports whether all errors of an output are relative to one spread: then its figures over
// all cases follow from those of the cases. It is false if the limits, which say so, are not at hand.
func (b Beside) oneSpread(output string) bool {
	if b.Limits == nil {
		return false
	}
	for precision, of := range b.Limits.Precisions {
		if (b.Precision == "" || precision == b.Precision) && of.Outputs[output].perChannel() {
			return false
		}
	}
	return true
}

// recountSpread computes the figures that are relative to the spread again, from what the file has of each case.
func (r *rejudgement) recountSpread(output string, said evidence.OutputFigures, each []tensor.CaseFigures) {
	what := "output " + output
	follows, ok := tensor.Pool(each, Kind(said.Kind) == KindProbability)
	if !ok {
		r.withinCases(what, said, each)
		return
	}
	if o := said.Others; o != nil { // of channels, which the file does not have
		follows.SpreadSNR, follows.MaxError = min(follows.SpreadSNR, float64(o.SNRdB)), max(follows.MaxError, float64(o.MaxError))
	}
	r.same(what+": snrDb", &said.SpreadSNRdB, follows.SpreadSNR)
	r.same(what+": maxError", &said.MaxError, follows.MaxError)
	r.same(what+": caseError", &said.CaseError, follows.CaseError)
	for _, c := range r.report.Checks.OfCases() {
		if c.Output == output && c.Figure == figure.Close {
			r.same(what+", close: misses", c.Misses, float64(follows.FarCases))
		}
	}
}

// withinCases is for files without the optional figures: it compares the figures that follow from sums over elements
// with what the errors of the cases leave possible. The mean of squared errors lies between those of the
// best and of the worst case, and the largest error is no smaller than the mean error of the worst case.
func (r *rejudgement) withinCases(what string, said evidence.OutputFigures, each []tensor.CaseFigures) {
	if len(each) == 0 {
		return
	}
	least, most := math.Inf(1), 0.0
	for _, of := range each {
		least, most = min(least, of.Error), max(most, of.Error)
	}
	r.between(what+": snrDb", float64(said.SpreadSNRdB), -20*math.Log10(most), -20*math.Log10(least))
	r.between(what+": maxError", float64(said.MaxError), most, math.Inf(1))
}

// between notes a figure that lies outside a range, ends included; NaN lies in none.
func (r *rejudgement) between(what string, said, from, to float64) {
	if said >= from && said <= to || near(said, from) || near(said, to) {
		return
	}
	r.differ(what, number(said), fmt.Sprintf("%s to %s", number(from), number(to)))
}
