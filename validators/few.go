package validators

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"mlpromote.dev/mlpromote/registry"
)

// Few says where the cases are so few that a default limit on equal answers allows more than twice
// as many others as usual, and how many cases it takes. It is empty where there is no such limit.
func (l Limits) Few(cases int) string {
	text, most := "", 0
	for _, precision := range slices.Sorted(maps.Keys(l.Precisions)) {
		t, ok := defaults[precision]
		if !ok || l.V == 1 {
			continue
		}
		proven := ProvableRate(t.rate, t.usual, cases)
		if 1-proven <= 2*(1-t.rate)+1e-9 {
			continue
		}
		outputs := l.Precisions[precision].Outputs
		for _, name := range slices.Sorted(maps.Keys(outputs)) {
			if o := outputs[name]; !isRate(o.Top1, proven) && !isRate(o.Equal, proven) {
				continue
			}
			if need := casesForDefault(t); need > most {
				most = need
				text = fmt.Sprintf("%s prove so little that the default limit on equal answers of output %q in %s is %s; with %d it is %s",
					registry.Count(cases, "case"), name, precision, share(proven), need, share(t.rate))
			}
		}
	}
	return text
}

func isRate(limit *AtLeast, rate float64) bool { return limit != nil && limit.Min == rate }

// casesForDefault returns a number of cases, with two digits that say something, that prove the
// default rate.
func casesForDefault(t tolerances) int {
	for n := 10.0; n < 1e6; n *= 1.05 {
		digit := math.Pow(10, math.Floor(math.Log10(n))-1)
		if round := math.Ceil(n/digit) * digit; ProvableRate(t.rate, t.usual, int(round)) >= t.rate {
			return int(round)
		}
	}
	return 0
}
