package validators

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/figure"
)

// Few says where the cases are so few that a default limit on a share of them allows more than twice
// as many others as usual, and how many cases it takes. It is empty where there is no such limit.
func (l Limits) Few(cases int) string {
	text, most := "", 0
	for _, precision := range slices.Sorted(maps.Keys(l.Precisions)) {
		outputs := l.Precisions[precision].Outputs
		for _, name := range slices.Sorted(maps.Keys(outputs)) {
			for _, row := range figure.OfOutputs() {
				d := rateOf(row, precision)
				proven := ProvableRate(d.limit, d.usual, cases)
				if limit, there := outputs[name].Bound(row); !row.Rate || !there || limit != proven || 1-proven <= 2*(1-d.limit)+1e-9 {
					continue
				}
				if need := casesForDefault(d.limit, d.usual); need > most {
					most = need
					text = fmt.Sprintf("%s prove so little that the default limit on %s of output %q in %s is %s; with %d it is %s",
						registry.Count(cases, "case"), row.Counts, name, precision, share(proven), need, share(d.limit))
				}
			}
		}
	}
	return text
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
