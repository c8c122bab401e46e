package validators

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"mlpromote.dev/mlpromote/registry"
)

// Few says where the cases are so few that a default limit on a share of them allows more than twice
// as many others as usual, and how many cases it takes. It is empty where there is no such limit.
func (l Limits) Few(cases int) string {
	text, most := "", 0
	for _, precision := range slices.Sorted(maps.Keys(l.Precisions)) {
		t, ok := defaults[precision]
		if !ok {
			continue
		}
		outputs := l.Precisions[precision].Outputs
		for _, name := range slices.Sorted(maps.Keys(outputs)) {
			for _, d := range outputs[name].defaultRates(t) {
				proven := ProvableRate(d.rate, d.usual, cases)
				if 1-proven <= 2*(1-d.rate)+1e-9 || !isRate(d.limit, proven) {
					continue
				}
				if need := casesForDefault(d.rate, d.usual); need > most {
					most = need
					text = fmt.Sprintf("%s prove so little that the default limit on %s of output %q in %s is %s; with %d it is %s",
						registry.Count(cases, "case"), d.what, name, precision, share(proven), need, share(d.rate))
				}
			}
		}
	}
	return text
}

// defaultRate is a limit on a share of cases beside what the preset gives where the cases prove it.
type defaultRate struct {
	what        string
	limit       *AtLeast
	rate, usual float64
}

func (o OutputLimits) defaultRates(t tolerances) []defaultRate {
	return []defaultRate{{"equal answers", o.Top1, t.rate, t.usual}, {"equal answers", o.Equal, t.rate, t.usual},
		{"close cases", o.Close, t.close, usuallyFar * (1 - t.close)}}
}

func isRate(limit *AtLeast, rate float64) bool { return limit != nil && limit.Min == rate }

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
