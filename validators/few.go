package validators

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/figure"
	"mlpromote.dev/mlpromote/validators/accuracy"
)

// LabelledCases are cases with labels, and the metric by which these would be compared with an output.
type LabelledCases struct {
	Labels string          // name of the tensor; empty: there are none
	Metric accuracy.Metric // the zero Metric: none fits
	Output string          // key of the output that the metric reads, as YAML: "output: scores, "; empty for the first that fits
	Sample Sample
}

// MoreCases describes what the cases are too few for, and names one number of cases that would do. few is about a default limit on a share
// of the cases that allows more than twice as many others as usual. unused is about labels that decide nothing because no limit is on accuracy.
// Each is empty if it does not apply.
func (l Limits) MoreCases(cases int, labelled LabelledCases) (few, unused string) {
	low := l.few(cases)
	need := low.need
	if labelled.Labels != "" && l.Accuracy == nil {
		limit, more := labelled.Sample.ProposeDrop(labelled.Metric, labelled.Output, l.Confidence)
		need = max(need, more)
		unused = fmt.Sprintf("labels %q decide nothing: ", labelled.Labels)
		switch {
		case more > 0:
			unused += fmt.Sprintf("%s prove too little for a limit on %s; with about %d, add accuracy: %s to limits",
				registry.Count(labelled.Sample.Cases, "case"), labelled.Metric.Name, need, limit)
		case limit != "":
			unused += "add accuracy: " + limit + " to limits"
		default:
			unused += "set limits.accuracy"
		}
	}
	if low.need > 0 {
		few = fmt.Sprintf("%s prove so little that the default limit on %s of output %q in %s is %s; with %d it is %s",
			registry.Count(cases, "case"), low.row.Counts, low.output, low.precision, share(low.proven), need, share(low.usual))
	}
	return few, unused
}

// lowDefault is a default limit that few cases lower. The zero lowDefault is none.
type lowDefault struct {
	row               figure.Row
	output, precision string
	proven, usual     float64
	need              int // cases
}

// few finds the default limit that takes most cases.
func (l Limits) few(cases int) (most lowDefault) {
	for _, precision := range slices.Sorted(maps.Keys(l.Precisions)) {
		outputs := l.Precisions[precision].Outputs
		for _, name := range slices.Sorted(maps.Keys(outputs)) {
			for _, row := range figure.OfOutputs() {
				d := rateOf(row, precision)
				proven := ProvableRate(d.limit, d.usual, cases)
				if limit, there := outputs[name].Bound(row); !row.Rate || !there || limit != proven || 1-proven <= 2*(1-d.limit)+1e-9 {
					continue
				}
				if need := casesForDefault(d.limit, d.usual); need > most.need {
					most = lowDefault{row, name, precision, proven, d.limit, need}
				}
			}
		}
	}
	return most
}

// casesForDefault returns a number of cases, with two digits that say something, that prove the
// default rate.
func casesForDefault(rate, usual float64) int {
	for n := 10.0; n < 1e6; n *= 1.05 {
		digit := math.Pow(10, math.Floor(math.Log10(n))-1)
		if round := math.Ceil(n/digit) * digit; ProvableRate(rate, usual, int(round)) >= rate {
			return int(round)
		}
	}
	return 0
}
