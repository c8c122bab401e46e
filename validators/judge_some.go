package validators

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/figure"
	"mlpromote.dev/mlpromote/validators/stats"
	"mlpromote.dev/mlpromote/validators/tensor"
)

// someTries is how many comparisons of some of the cases there may be, each with the chance to fail
// an engine that is right.
const someTries = 100

// mostChance is the most that chance may excuse, in dB. Where few cases have most of the noise the
// quantile says nothing: 33 dB if it is one case of a thousand. A single case at the default limit on
// the error of a case has less than 10 dB more noise than the default limit on SNR among eight.
const mostChance = 10.0

// JudgeSome judges what was measured on some of the cases. Accuracy is of the whole set, and what
// so few cases cannot decide is no reason against the engine: their noise may exceed the limit by what
// chance makes of it, which follows from that of m.Whole, and of systematic errors they say nothing. The cosine of
// a single case may be that of as much more noise as chance excuses at most: at another size a single case may have
// a value that calibration has not seen, of which the whole set has only some. So may all errors of cases of other sizes.
func (l Limits) JudgeSome(precision string, m Measured) Judgement {
	l.Accuracy, l.MinCases = nil, 1
	limits := l.Precisions[precision].Outputs
	l.Confidence = 1 - (1-l.Confidence)/someTries // a single case in which two classes are almost tied excludes no rate
	chance := l.allow(precision, m)
	m.Outputs = withoutClasses(m.Outputs)
	j := l.Judge(precision, m)
	found := slices.DeleteFunc(j.Found, func(f Finding) bool { return f.Reason.Code == ReasonNotEnough })
	for i, f := range found {
		r := f.Reason
		if own := limits[r.Output].Cosine; r.Figure == figure.Cosine && own.Min != float64(r.Limit) {
			found[i].Reason.Message += fmt.Sprintf(", which is %g with %.2g dB more noise, since a single case may be so much worse", own.Min, mostChance)
		}
		if more := chance[r.Output]; more > 0 && r.Figure == figure.SNR {
			how := "that chance explains"
			if more == mostChance {
				how = "at most for chance"
			}
			found[i].Reason.Message += fmt.Sprintf(", which is %.3g less %.2g %s in %s",
				float64(r.Limit)+more, more, how, registry.Count(m.Cases, "case"))
		}
	}
	return (&judgement{found: found, checks: j.Checks, confidence: j.Confidence, slices: j.Slices}).judgement()
}

// JudgeFinite fails an engine whose outputs are NaN or infinite where the reference's are not, and judges nothing else.
func JudgeFinite(outputs map[string]tensor.Result) Findings {
	var j judgement
	for _, name := range slices.Sorted(maps.Keys(outputs)) {
		j.finite(name, outputs[name])
	}
	return j.found
}

// CheckOne gives the checks of the limits that a single case can exceed. Shares of cases, systematic errors and classes
// are for all cases to show.
func (l Limits) CheckOne(precision string, outputs map[string]tensor.Result) evidence.Checks {
	judged := l.Judge(precision, Measured{Outputs: withoutClasses(outputs), Cases: 1})
	return slices.DeleteFunc(judged.Checks, func(c evidence.Check) bool {
		row, _ := figure.Find(c.Figure)
		return row.Rate || row.Whole
	})
}

// withoutClasses leaves out of results whether an engine keeps classes, groups of cases, and quarters.
func withoutClasses(outputs map[string]tensor.Result) map[string]tensor.Result {
	outputs = maps.Clone(outputs)
	for name, r := range outputs {
		r.Classes, r.Groups, r.Quarters = nil, nil, nil
		outputs[name] = r
	}
	return outputs
}

// allow loosens the limits of a precision to what some of the cases can show, and returns by how many
// dB the SNR of an output may be lower.
func (l *Limits) allow(precision string, m Measured) map[string]float64 {
	p := l.Precisions[precision]
	if len(p.Outputs) == 0 { // no limits to loosen; the judge says so
		return nil
	}
	outputs, chance := maps.Clone(p.Outputs), make(map[string]float64)
	for name, o := range outputs {
		for _, row := range figure.OfOutputs() {
			if row.Whole {
				o.unbound(row)
			}
		}
		if m.Outputs[name].Top1Rows == 0 { // at another size of an open dimension a row can have one value
			o.Top1 = nil
		}
		if o.Cosine != nil {
			o.Cosine = &AtLeast{noisier(o.Cosine.Min, mostChance)}
		}
		if few := m.Outputs[name].FullCases; o.SNRdB != nil && few > 0 {
			chance[name] = chanceDB(m.Whole[name], few, l.Confidence)
			if m.OtherSizes {
				chance[name] = mostChance
			}
			o.SNRdB = &AtLeast{o.SNRdB.Min - chance[name]}
		}
		for _, bound := range []**AtMost{&o.MaxError, &o.CaseError} {
			switch {
			case *bound == nil:
			case m.OtherSizes, o.QuartersAlone && m.Whole[name].Quarters != nil: // few cases have no quarters
				*bound = &AtMost{(*bound).Max * math.Pow(10, mostChance/20)}
			}
		}
		outputs[name] = o
	}
	p.Outputs = outputs
	l.Precisions = maps.Clone(l.Precisions)
	l.Precisions[precision] = p
	return chance
}

// noisier returns the cosine that a case has with so many dB more noise at a right angle to the reference. What is
// not above 0 allows any noise, and stays.
func noisier(cosine, db float64) float64 {
	if !(cosine > 0) {
		return cosine
	}
	noise := (1/(cosine*cosine) - 1) * math.Pow(10, db/10)
	return 1 / math.Sqrt(1+noise)
}

// chanceDB is by how much the noise of a few cases may exceed that of the whole, in dB, rounded up to
// a tenth, and at most mostChance.
func chanceDB(whole tensor.Result, few int, confidence float64) float64 {
	some, all := whole.CaseDegrees*float64(few), whole.CaseDegrees*float64(whole.FullCases)
	return min(math.Ceil(100*math.Log10(stats.UpperNoise(some, all, confidence)))/10, mostChance)
}
